#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/bytes.hpp"

namespace esker::detail {

/// A node of the trie, unique for ever: the random part belongs to an opened handle, the counter to
/// the node. {0, 0} is a root.
struct NodeId {
  std::uint64_t random = 0;
  std::uint64_t counter = 0;
  friend constexpr auto operator<=>(const NodeId&, const NodeId&) = default;
  [[nodiscard]] constexpr bool root() const noexcept { return random == 0 && counter == 0; }
};

/// For tables by node id in memory.
struct NodeHash {
  std::size_t operator()(const NodeId& id) const noexcept {
    return id.random ^ (id.counter * 0x9E37'79B9'7F4A'7C15U);
  }
};

/// Never renumber.
enum class BlockKind : std::uint8_t { tokens = 1, key = 2 };

/// The fixed part of a block header; doc/format.md, "Block headers". The label (zero padded) and
/// one XXH3-64 per plane follow.
struct BlockHeader {
  std::uint32_t magic;
  std::uint32_t header_bytes;
  std::uint64_t checksum;
  std::uint32_t block;
  std::uint32_t generation;
  std::uint64_t node_random;
  std::uint64_t node_counter;
  std::uint64_t parent_random;
  std::uint64_t parent_counter;
  std::uint64_t parent_hash;
  std::uint64_t chain_hash;
  std::uint32_t first_token;
  std::uint32_t tokens;
  std::uint64_t published_unix_ns;
  std::uint64_t sums_checksum;
  std::uint16_t label_bytes;
  std::uint8_t kind;
  std::uint8_t namespace_bytes;
  std::uint32_t reserved0;
  std::array<char, 64> name_space;
  std::array<std::uint8_t, 24> reserved;

  [[nodiscard]] NodeId node() const noexcept { return {node_random, node_counter}; }
  [[nodiscard]] NodeId parent() const noexcept { return {parent_random, parent_counter}; }
};
static_assert(std::is_trivially_copyable_v<BlockHeader>);
static_assert(sizeof(BlockHeader) == 192);
static_assert(offsetof(BlockHeader, magic) == 0);
static_assert(offsetof(BlockHeader, header_bytes) == 4);
static_assert(offsetof(BlockHeader, checksum) == 8);
static_assert(offsetof(BlockHeader, block) == 16);
static_assert(offsetof(BlockHeader, generation) == 20);
static_assert(offsetof(BlockHeader, node_random) == 24);
static_assert(offsetof(BlockHeader, node_counter) == 32);
static_assert(offsetof(BlockHeader, parent_random) == 40);
static_assert(offsetof(BlockHeader, parent_counter) == 48);
static_assert(offsetof(BlockHeader, parent_hash) == 56);
static_assert(offsetof(BlockHeader, chain_hash) == 64);
static_assert(offsetof(BlockHeader, first_token) == 72);
static_assert(offsetof(BlockHeader, tokens) == 76);
static_assert(offsetof(BlockHeader, published_unix_ns) == 80);
static_assert(offsetof(BlockHeader, sums_checksum) == 88);
static_assert(offsetof(BlockHeader, label_bytes) == 96);
static_assert(offsetof(BlockHeader, kind) == 98);
static_assert(offsetof(BlockHeader, namespace_bytes) == 99);
static_assert(offsetof(BlockHeader, reserved0) == 100);
static_assert(offsetof(BlockHeader, name_space) == 104);
static_assert(offsetof(BlockHeader, reserved) == 168);

inline constexpr std::uint32_t block_magic = 0x4B4C4245;  // "EBLK"
inline constexpr std::uint32_t max_blocks_in_segment = (1U << 28) - 1;
inline constexpr std::size_t max_namespace_bytes = 64;
inline constexpr std::size_t max_key_bytes = 64;
inline constexpr std::size_t max_label_bytes = 4096;  // 1,024 tokens
inline constexpr std::size_t max_header_and_label_bytes = sizeof(BlockHeader) + max_label_bytes;

/// Bytes set aside for the label: token ids of a full block, or an opaque key.
constexpr std::uint32_t label_capacity_of(std::uint32_t block_tokens) noexcept {
  const std::uint32_t tokens_bytes = 4 * block_tokens;
  return static_cast<std::uint32_t>(align_up(tokens_bytes > 64 ? tokens_bytes : 64, 8));
}

constexpr std::uint32_t block_header_bytes_of(std::uint32_t block_tokens,
                                              std::size_t planes) noexcept {
  return static_cast<std::uint32_t>(
      align_up(sizeof(BlockHeader) + label_capacity_of(block_tokens) + 8 * planes, 64));
}

/// Seeds the header checksum, so that a header of another store, block or generation never checks.
[[nodiscard]] std::uint64_t block_seed(const std::array<std::uint8_t, 16>& uuid,
                                       std::uint32_t block, std::uint32_t generation) noexcept;

/// Checksum over the fixed part from offset 16 on and the label; never 0.
[[nodiscard]] std::uint64_t block_checksum(std::span<const std::byte> header_and_label,
                                           std::uint64_t seed) noexcept;

/// A header is well formed when its lengths and reserved bytes are in range for this geometry.
[[nodiscard]] bool well_formed(const BlockHeader& header, std::uint32_t block_tokens,
                               std::uint32_t header_bytes) noexcept;

}  // namespace esker::detail
