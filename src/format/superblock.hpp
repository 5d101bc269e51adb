#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/options.hpp>
#include <esker/result.hpp>
#include <span>
#include <string_view>
#include <type_traits>

namespace esker::detail {

/// The fixed part of a superblock slot; doc/format.md, "Superblock". The row table, the model id
/// and the checksum of the slot follow it.
struct SuperblockHeader {
  std::array<char, 8> magic;
  std::uint32_t write_version;
  std::uint32_t read_version;
  std::uint64_t incompatible_features;
  std::uint64_t read_only_features;
  std::uint64_t compatible_features;
  std::uint64_t sequence;
  std::array<std::uint8_t, 16> uuid;
  std::array<std::uint8_t, 16> secret;
  std::uint64_t created_unix_ns;
  std::uint64_t capacity_bytes;
  std::uint64_t segments_bytes;
  std::uint64_t sessions_bytes;
  std::uint64_t cold_bytes;
  std::uint64_t segment_file_bytes;
  std::uint32_t segment_blocks;
  std::uint32_t max_segments;
  std::uint32_t block_tokens;
  std::uint32_t layers;
  std::uint32_t planes;
  std::uint32_t block_header_bytes;
  std::uint32_t slots;
  std::uint32_t model_id_bytes;
  std::array<char, 32> dtype;
  std::uint32_t sharing;
  std::array<std::uint8_t, 60> reserved;
};
static_assert(std::is_trivially_copyable_v<SuperblockHeader>);
static_assert(sizeof(SuperblockHeader) == 256);
static_assert(offsetof(SuperblockHeader, magic) == 0);
static_assert(offsetof(SuperblockHeader, write_version) == 8);
static_assert(offsetof(SuperblockHeader, read_version) == 12);
static_assert(offsetof(SuperblockHeader, incompatible_features) == 16);
static_assert(offsetof(SuperblockHeader, read_only_features) == 24);
static_assert(offsetof(SuperblockHeader, compatible_features) == 32);
static_assert(offsetof(SuperblockHeader, sequence) == 40);
static_assert(offsetof(SuperblockHeader, uuid) == 48);
static_assert(offsetof(SuperblockHeader, secret) == 64);
static_assert(offsetof(SuperblockHeader, created_unix_ns) == 80);
static_assert(offsetof(SuperblockHeader, capacity_bytes) == 88);
static_assert(offsetof(SuperblockHeader, segments_bytes) == 96);
static_assert(offsetof(SuperblockHeader, sessions_bytes) == 104);
static_assert(offsetof(SuperblockHeader, cold_bytes) == 112);
static_assert(offsetof(SuperblockHeader, segment_file_bytes) == 120);
static_assert(offsetof(SuperblockHeader, segment_blocks) == 128);
static_assert(offsetof(SuperblockHeader, max_segments) == 132);
static_assert(offsetof(SuperblockHeader, block_tokens) == 136);
static_assert(offsetof(SuperblockHeader, layers) == 140);
static_assert(offsetof(SuperblockHeader, planes) == 144);
static_assert(offsetof(SuperblockHeader, block_header_bytes) == 148);
static_assert(offsetof(SuperblockHeader, slots) == 152);
static_assert(offsetof(SuperblockHeader, model_id_bytes) == 156);
static_assert(offsetof(SuperblockHeader, dtype) == 160);
static_assert(offsetof(SuperblockHeader, sharing) == 192);
static_assert(offsetof(SuperblockHeader, reserved) == 196);

inline constexpr std::size_t superblock_slot_bytes = 32'768;
inline constexpr std::size_t superblock_bytes = 2 * superblock_slot_bytes;
inline constexpr std::size_t superblock_checksum_offset = superblock_slot_bytes - 8;
inline constexpr std::uint32_t max_seats = 4095;
inline constexpr std::uint32_t max_store_blocks = 1U << 28;

/// What a superblock says, in memory.
struct Superblock {
  std::uint32_t write_version = 0;
  std::uint32_t read_version = 0;
  std::uint64_t read_only_features = 0;  ///< unknown ones: the store may be read, never written
  std::uint64_t sequence = 0;
  std::array<std::uint8_t, 16> uuid{};
  std::array<std::uint8_t, 16> secret{};
  std::uint64_t created_unix_ns = 0;
  std::uint64_t capacity_bytes = 0;
  std::uint64_t segments_bytes = 0;
  std::uint64_t sessions_bytes = 0;
  std::uint64_t cold_bytes = 0;
  std::uint64_t segment_file_bytes = 0;
  std::uint32_t segment_blocks = 0;
  std::uint32_t max_segments = 0;
  std::uint32_t seats = 0;
  Sharing sharing = Sharing::owner;
  Geometry geometry;
  ModelId model;

  [[nodiscard]] std::uint32_t max_blocks() const noexcept { return max_segments * segment_blocks; }
};

using SuperblockSlot = std::array<std::byte, superblock_slot_bytes>;

void encode_superblock(const Superblock& superblock, SuperblockSlot& slot);

/// Reads both slots and takes the valid one with the higher sequence. `path` is for messages.
[[nodiscard]] Result<Superblock> decode_superblock(std::span<const std::byte> both_slots,
                                                   std::string_view path);

}  // namespace esker::detail
