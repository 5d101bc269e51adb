#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace esker {

/// Token ids from position 0 on. Non-text positions are negative ids (doc/caveats.md, "Images").
using Tokens = std::span<const std::int32_t>;

/// The two kinds of rows a layer keeps per token.
enum class Plane : std::uint8_t { key = 0, value = 1 };

[[nodiscard]] std::string_view name(Plane plane) noexcept;

/// Positions [begin, end) of a prompt.
struct TokenRange {
  std::uint32_t begin = 0;
  std::uint32_t end = UINT32_MAX;  ///< clipped to what is there

  [[nodiscard]] constexpr std::uint32_t size() const noexcept { return end - begin; }
  [[nodiscard]] constexpr bool empty() const noexcept { return begin >= end; }
  friend constexpr bool operator==(TokenRange, TokenRange) = default;
};

/// Bytes that one token occupies in one layer. Either may be 0, not both (MLA models have no V).
struct LayerRows {
  std::uint32_t key_row_bytes = 0;
  std::uint32_t value_row_bytes = 0;
  friend constexpr bool operator==(LayerRows, LayerRows) = default;
};

/// The shape of KV data: what one token costs in each layer, and how many tokens form a block.
/// Threads:  a plain value.
/// Lifetime: fixed for the life of a store; another geometry is another store.
/// Errors:   `validate` says which field is out of range.
/// Cost:     none.
struct Geometry {
  static constexpr std::uint32_t max_layers = 2048;
  static constexpr std::uint32_t max_block_tokens = 1024;
  static constexpr std::uint32_t max_row_bytes = 1U << 24;
  static constexpr std::uint32_t max_dtype_bytes = 31;

  std::vector<LayerRows> layers;
  std::string dtype;  ///< free text such as "f16", "bf16", "q8_0"; compared, never interpreted
  std::uint32_t block_tokens = 32;  ///< 1…1024: the unit of storing; hits are exact to the token

  /// `layers` equal layers of `kv_heads` heads of `head_dim` elements for K and for V.
  /// Known dtypes: f32, f16, bf16, f8_e4m3, f8_e5m2, i8, q8_0, q4_0; others are `Errc::invalid`.
  [[nodiscard]] static Result<Geometry> uniform(std::uint32_t layers, std::uint32_t kv_heads,
                                                std::uint32_t head_dim, std::string_view dtype,
                                                std::uint32_t block_tokens = 32);

  [[nodiscard]] Result<void> validate() const;
  /// Bytes of one row, or 0 where the layer or the plane does not exist.
  [[nodiscard]] std::uint32_t row_bytes(std::uint32_t layer, Plane plane) const noexcept;
  [[nodiscard]] std::uint64_t token_bytes() const noexcept;  ///< all layers, K and V
  [[nodiscard]] std::uint64_t block_bytes() const noexcept;  ///< token_bytes() × block_tokens
  /// One line that says how `other` differs, or "" when both are equal.
  [[nodiscard]] std::string difference(const Geometry& other) const;
  /// The same for layers, rows and dtype alone: two shapes may cut tokens into other blocks.
  [[nodiscard]] std::string row_difference(const Geometry& other) const;

  friend bool operator==(const Geometry&, const Geometry&) = default;
};

/// Everything that changes KV bytes besides the tokens, as sorted `key=value` lines: weights
/// digest, rope settings, KV rotation, tensor-parallel rank… Two stores mix only if all of it is
/// equal.
/// Threads:  a plain value.
/// Lifetime: fixed for the life of a store.
/// Errors:   `set` and `parse` refuse empty keys, control characters and more than 15 KiB.
/// Cost:     none.
class ModelId {
 public:
  static constexpr std::size_t max_text_bytes = 15 * 1024;

  /// Reads lines of `key=value`; blank lines are skipped, a repeated key is refused.
  [[nodiscard]] static Result<ModelId> parse(std::string_view text);

  [[nodiscard]] Result<void> set(std::string_view key, std::string_view value);
  /// The value of a key, or "" when it is not set.
  [[nodiscard]] std::string_view get(std::string_view key) const noexcept;
  /// True for a store without any identity: shown as "unnamed" and refused by what serves chats.
  [[nodiscard]] bool unnamed() const noexcept { return entries_.empty(); }
  [[nodiscard]] std::string text() const;  ///< canonical form: sorted lines, each ending in '\n'
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& entries() const noexcept {
    return entries_;
  }
  /// The keys whose values differ, or that only one side has; sorted.
  [[nodiscard]] std::vector<std::string> differing_keys(const ModelId& other) const;
  /// Those keys with both values, or "" when both are equal.
  [[nodiscard]] std::string difference(const ModelId& other) const;

  friend bool operator==(const ModelId&, const ModelId&) = default;

 private:
  std::map<std::string, std::string, std::less<>> entries_;
};

}  // namespace esker
