#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/result.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace esker::cli {

/// A path by its tokens: what two stores or snapshots can have in common.
struct DiffPath {
  std::string space;        ///< compares namespaces: bytes, or a digest that has no name
  std::string shown_space;  ///< for people
  std::vector<std::int32_t> tokens;
  std::string name;  ///< on its own side
};

struct DiffSession {
  std::string name;
  std::string space;
  std::uint32_t count = 0;  ///< of tokens
  bool readable = false;    ///< false: only their number is known
  std::vector<std::int32_t> tokens;
};

/// Reads rows of one path.
class DiffRows {
 public:
  virtual ~DiffRows() = default;
  [[nodiscard]] virtual Result<void> copy(std::uint32_t layer, Plane plane, TokenRange range,
                                          std::span<std::byte> out) const = 0;
};

/// A store or a snapshot, as `esker diff` sees it.
/// Threads:  one.
/// Lifetime: rows borrow from their side.
/// Errors:   what the store or the snapshot says.
/// Cost:     `paths` holds the tokens of all paths.
class DiffSide {
 public:
  /// A snapshot where the operand means one, else a store.
  [[nodiscard]] static Result<std::unique_ptr<DiffSide>> open(const std::string& operand);
  virtual ~DiffSide() = default;

  [[nodiscard]] virtual const Geometry& geometry() const = 0;
  [[nodiscard]] virtual const ModelId& model() const = 0;
  /// Namespaces whose names are known, to name those of the other side by.
  [[nodiscard]] virtual Result<std::vector<std::string>> spaces() const = 0;
  /// Names for namespaces that only a digest is known of.
  [[nodiscard]] virtual Result<void> name_spaces(const std::vector<std::string>& names) = 0;
  /// All paths of tokens, by namespace and tokens.
  [[nodiscard]] virtual Result<std::vector<DiffPath>> paths() const = 0;
  /// Blocks under opaque keys, which no tokens name.
  [[nodiscard]] virtual Result<std::uint64_t> keys() const = 0;
  /// By name.
  [[nodiscard]] virtual Result<std::vector<DiffSession>> sessions() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<DiffRows>> rows(const DiffPath& path) const = 0;
};

}  // namespace esker::cli
