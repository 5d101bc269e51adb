#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/kv_cache.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace esker::test {

/// What a live cache has to contain. Each token has a state that follows from the state before it
/// and a number of its own; a row holds both states and bytes that follow from its state, layer,
/// plane and position. So any row shows what it has to be, and any two neighbours show whether they
/// belong to one sequence: nobody has to know what was written.
class Sequence {
 public:
  explicit Sequence(std::vector<std::uint64_t> states = {}) : states_(std::move(states)) {}

  void add(std::uint64_t number);
  void truncate(std::uint32_t tokens);
  [[nodiscard]] std::uint32_t tokens() const noexcept {
    return static_cast<std::uint32_t>(states_.size());
  }
  [[nodiscard]] const std::vector<std::uint64_t>& states() const noexcept { return states_; }
  /// Packed rows of `range`. Rows have at least 16 bytes.
  [[nodiscard]] std::vector<std::byte> rows(const Geometry& geometry, std::uint32_t layer,
                                            Plane plane, TokenRange range) const;
  /// The first `tokens` of them are the same.
  [[nodiscard]] bool shares(const Sequence& other, std::uint32_t tokens) const;

 private:
  std::vector<std::uint64_t> states_;
};

/// Where rows belong.
struct RowsOf {
  std::uint32_t layer = 0;
  Plane plane = Plane::key;
  std::uint32_t first_position = 0;
};

/// The states that rows of one plane show, or what is wrong with them.
struct Shown {
  std::string problem;
  std::vector<std::uint64_t> states;
};
[[nodiscard]] Shown shown_by(std::span<const std::byte> rows, std::uint32_t row_bytes,
                             const RowsOf& where);

/// The sequence that all committed rows of a cache show, by `keys`, `values` and `read`; throws on
/// anything wrong.
[[nodiscard]] Sequence sequence_of(const KvCache& cache);

/// Adds `tokens` tokens to both and commits them, with one call per layer or token by token.
[[nodiscard]] Result<void> append(KvCache& cache, Sequence& sequence, std::uint32_t tokens,
                                  std::uint64_t number, bool one_by_one = false);
/// Three layers of rows of at least 16 bytes, none a power of two; the middle one has no V.
[[nodiscard]] Geometry cache_geometry();

}  // namespace esker::test
