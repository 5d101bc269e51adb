#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/result.hpp>
#include <esker/store.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "args.hpp"
#include "llama/layout.hpp"

namespace esker::cli {

/// Which tokens of a store or of a file are meant: at most one of `path`, `session` and the file of
/// `prompt`. With none of them, the only session that is there, else the only path.
struct PrefixChoice {
  std::string path;     ///< a name, or the beginning of it
  std::string session;  ///< the name of one
  PromptArgs prompt;    ///< `first` also shortens a path or a session
};

/// The rows of one prefix, wherever they are kept: in a store, a snapshot or a file of llama.cpp.
/// Threads:  one at a time.
/// Lifetime: keeps open what it reads from. A store's rows are pinned where a seat is free.
/// Errors:   `Errc::corrupt` from `copy` when what was read does not check.
/// Cost:     with RowsCheck::all opening a store's prefix reads all its rows once.
class RowsSource {
 public:
  RowsSource() = default;
  RowsSource(const RowsSource&) = delete;
  RowsSource& operator=(const RowsSource&) = delete;
  virtual ~RowsSource() = default;

  [[nodiscard]] virtual const Geometry& geometry() const = 0;
  [[nodiscard]] virtual const ModelId& model() const = 0;
  /// The rows of `range`, which lies within `tokens()`; `out` holds exactly them.
  [[nodiscard]] virtual Result<void> copy(std::uint32_t layer, Plane plane, TokenRange range,
                                          std::span<std::byte> out) const = 0;
  /// How the file lays its rows out; null for what is no file of llama.cpp.
  [[nodiscard]] virtual const llama::SeqLayout* layout() const noexcept { return nullptr; }
  /// Fails when what was read may not belong together, as of a file that was written meanwhile.
  [[nodiscard]] virtual Result<void> check_unchanged() const { return {}; }

  /// Those of the wanted tokens, from the first one on, whose rows are there. None is no error.
  [[nodiscard]] Tokens tokens() const noexcept { return tokens_; }
  [[nodiscard]] std::uint64_t asked() const noexcept { return asked_; }
  [[nodiscard]] const std::string& name_space() const noexcept { return name_space_; }
  /// The name of the path that they are on, or 0 where there is none.
  [[nodiscard]] std::uint64_t path() const noexcept { return path_; }

 protected:
  std::vector<std::int32_t> tokens_;
  std::uint64_t asked_ = 0;
  std::string name_space_;
  std::uint64_t path_ = 0;
};

/// When a store's rows are checked. Those of a snapshot are always checked as they are copied.
enum class RowsCheck : std::uint8_t {
  all,          ///< first, so that damage only makes the prefix shorter
  when_copied,  ///< damage is an error of `copy`: for who wants few of the rows
};

enum class SourceKind : std::uint8_t { store, snapshot, llama };

/// What an operand leads to: a store of the home or of a directory, else by how the file begins.
/// "-" is a file of llama.cpp, since snapshots must be searched.
[[nodiscard]] Result<SourceKind> kind_of_source(const std::string& operand);

/// Opens the prefix that `choice` names.
[[nodiscard]] Result<std::unique_ptr<RowsSource>> open_rows(const std::string& operand,
                                                            const PrefixChoice& choice,
                                                            RowsCheck check = RowsCheck::all);

/// Tokens of a store, the root that they start from, and how many of them were asked for. They go
/// on to the end of a block, since blocks are found by all of their tokens.
struct WantedTokens {
  std::vector<std::int32_t> tokens;
  std::string name_space;
  std::uint64_t asked = 0;
};

/// The tokens that `choice` names, stored or not; it names some.
[[nodiscard]] Result<WantedTokens> wanted_tokens(Store& store, const PrefixChoice& choice);

// What `open_rows` chooses from.

[[nodiscard]] Result<std::unique_ptr<RowsSource>> open_store_rows(const std::string& operand,
                                                                  const PrefixChoice& choice,
                                                                  RowsCheck check);
[[nodiscard]] Result<std::unique_ptr<RowsSource>> open_snapshot_rows(const std::string& file,
                                                                     const PrefixChoice& choice);
[[nodiscard]] Result<std::unique_ptr<RowsSource>> open_llama_rows(const std::string& file,
                                                                  const PrefixChoice& choice);

/// The one of these sessions or paths that is meant when none was named, as `choice` would name
/// it; an error that lists them when there are several.
[[nodiscard]] Result<PrefixChoice> only_choice(const std::string& operand,
                                               std::span<const std::string> sessions,
                                               std::span<const std::uint64_t> paths);

}  // namespace esker::cli
