#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/esker.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace esker::test {

using TokenList = std::vector<std::int32_t>;

/// `count` token ids that depend on `seed` only.
[[nodiscard]] TokenList prompt(std::uint32_t count, std::uint64_t seed);
/// The first `count` tokens of `tokens`, then `tail`.
[[nodiscard]] TokenList fork_at(const TokenList& tokens, std::uint32_t count,
                                const TokenList& tail);
[[nodiscard]] TokenList first(const TokenList& tokens, std::uint32_t count);

/// What every row has to contain: a function of the namespace, the tokens up to its position, the
/// layer and the plane. Any read of any store can be checked against it; nothing is remembered.
class Content {
 public:
  explicit Content(Tokens tokens, Namespace name_space = {});
  Content(std::span<const Key> keys, std::uint32_t block_tokens, Namespace name_space = {});

  void row(std::uint32_t layer, Plane plane, std::uint32_t position,
           std::span<std::byte> out) const;
  [[nodiscard]] std::vector<std::byte> rows(const Geometry& geometry, std::uint32_t layer,
                                            Plane plane, TokenRange range) const;
  [[nodiscard]] std::uint32_t tokens() const noexcept {
    return static_cast<std::uint32_t>(states_.size());
  }

 private:
  std::vector<std::uint64_t> states_;
};

/// Calls `visit(layer, plane)` for every plane that has rows.
template <class Visit>
void each_plane(const Geometry& geometry, Visit&& visit) {
  for (std::uint32_t layer = 0; layer < geometry.layers.size(); ++layer) {
    for (const Plane plane : {Plane::key, Plane::value}) {
      if (geometry.row_bytes(layer, plane) > 0) visit(layer, plane);
    }
  }
}

/// Writes all rows of `range`, one call per plane.
[[nodiscard]] Result<void> write_rows(Reservation& reservation, const Geometry& geometry,
                                      const Content& content, TokenRange range);

/// "" when `prefix` holds exactly the right rows for its tokens, read both by `view` and by `copy`;
/// else what is wrong.
[[nodiscard]] std::string wrong(const Prefix& prefix, const Geometry& geometry, Tokens tokens,
                                Namespace name_space = {});
/// The same for the rows alone, whatever they are named by.
[[nodiscard]] std::string wrong_rows(const Prefix& prefix, const Geometry& geometry,
                                     const Content& content);

}  // namespace esker::test
