#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/result.hpp>
#include <esker/snapshot_info.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace esker::detail {

/// The first 256 bytes of a snapshot; doc/snapshot_format.md. Row table, model id and a checksum
/// follow, then frames to the end of the file.
struct SnapshotHeader {
  std::array<char, 8> magic;
  std::uint32_t write_version;
  std::uint32_t read_version;
  std::uint64_t incompatible_features;
  std::uint64_t compatible_features;
  std::array<std::uint8_t, 16> id;
  std::array<std::uint8_t, 16> salt;
  std::uint64_t created_unix_ns;
  std::uint32_t header_bytes;
  std::uint32_t block_tokens;
  std::uint32_t layers;
  std::uint32_t planes;
  std::uint32_t model_id_bytes;
  std::uint32_t lossy;
  std::array<char, 32> dtype;
  std::uint32_t use;
  std::array<std::uint8_t, 124> reserved;
};
static_assert(std::is_trivially_copyable_v<SnapshotHeader>);
static_assert(sizeof(SnapshotHeader) == 256);
static_assert(offsetof(SnapshotHeader, magic) == 0);
static_assert(offsetof(SnapshotHeader, write_version) == 8);
static_assert(offsetof(SnapshotHeader, read_version) == 12);
static_assert(offsetof(SnapshotHeader, incompatible_features) == 16);
static_assert(offsetof(SnapshotHeader, compatible_features) == 24);
static_assert(offsetof(SnapshotHeader, id) == 32);
static_assert(offsetof(SnapshotHeader, salt) == 48);
static_assert(offsetof(SnapshotHeader, created_unix_ns) == 64);
static_assert(offsetof(SnapshotHeader, header_bytes) == 72);
static_assert(offsetof(SnapshotHeader, block_tokens) == 76);
static_assert(offsetof(SnapshotHeader, layers) == 80);
static_assert(offsetof(SnapshotHeader, planes) == 84);
static_assert(offsetof(SnapshotHeader, model_id_bytes) == 88);
static_assert(offsetof(SnapshotHeader, lossy) == 92);
static_assert(offsetof(SnapshotHeader, dtype) == 96);
static_assert(offsetof(SnapshotHeader, use) == 128);
static_assert(offsetof(SnapshotHeader, reserved) == 132);

/// Never renumber.
enum class SnapshotUse : std::uint32_t {
  portable = 0,  ///< tenants' names are digests, path hashes are of this file's salt
  cold = 1,      ///< within a store: namespaces as they are, path hashes are the store's
};

/// Never renumber.
enum class FrameKind : std::uint8_t {
  namespaces = 1,
  span = 2,
  chunk = 3,
  session = 4,
  state = 5,
  index = 6,
  end = 7,
};

/// Stands before every payload. Payloads are padded with zeros to a multiple of 8.
struct FrameHeader {
  std::uint32_t magic;
  std::uint8_t kind;
  std::uint8_t compression;
  std::uint8_t filter;
  std::uint8_t lossy;
  std::uint64_t payload_bytes;
  std::uint64_t payload_checksum;
  std::uint64_t sequence;
  std::uint32_t number;
  std::uint32_t first_row;
  std::uint32_t rows;
  std::uint32_t reserved;
  std::uint64_t content;
  std::uint64_t checksum;
};
static_assert(std::is_trivially_copyable_v<FrameHeader>);
static_assert(sizeof(FrameHeader) == 64);
static_assert(offsetof(FrameHeader, magic) == 0);
static_assert(offsetof(FrameHeader, kind) == 4);
static_assert(offsetof(FrameHeader, compression) == 5);
static_assert(offsetof(FrameHeader, filter) == 6);
static_assert(offsetof(FrameHeader, lossy) == 7);
static_assert(offsetof(FrameHeader, payload_bytes) == 8);
static_assert(offsetof(FrameHeader, payload_checksum) == 16);
static_assert(offsetof(FrameHeader, sequence) == 24);
static_assert(offsetof(FrameHeader, number) == 32);
static_assert(offsetof(FrameHeader, first_row) == 36);
static_assert(offsetof(FrameHeader, rows) == 40);
static_assert(offsetof(FrameHeader, reserved) == 44);
static_assert(offsetof(FrameHeader, content) == 48);
static_assert(offsetof(FrameHeader, checksum) == 56);

/// A node in the payload of a span frame; its label follows, padded to 8 bytes.
struct SnapshotNode {
  std::uint32_t parent;
  std::uint32_t name_space;
  std::uint32_t first_token;
  std::uint32_t tokens;
  std::uint64_t path_hash;
  std::uint64_t published_unix_ns;
  std::uint64_t used_unix_ns;
  std::uint16_t label_bytes;
  std::uint8_t kind;
  std::uint8_t flags;
  std::uint32_t reserved;
};
static_assert(std::is_trivially_copyable_v<SnapshotNode>);
static_assert(sizeof(SnapshotNode) == 48);
static_assert(offsetof(SnapshotNode, parent) == 0);
static_assert(offsetof(SnapshotNode, name_space) == 4);
static_assert(offsetof(SnapshotNode, first_token) == 8);
static_assert(offsetof(SnapshotNode, tokens) == 12);
static_assert(offsetof(SnapshotNode, path_hash) == 16);
static_assert(offsetof(SnapshotNode, published_unix_ns) == 24);
static_assert(offsetof(SnapshotNode, used_unix_ns) == 32);
static_assert(offsetof(SnapshotNode, label_bytes) == 40);
static_assert(offsetof(SnapshotNode, kind) == 42);
static_assert(offsetof(SnapshotNode, flags) == 43);
static_assert(offsetof(SnapshotNode, reserved) == 44);

inline constexpr std::uint32_t snapshot_write_version = 1;
inline constexpr std::uint32_t snapshot_read_version = 1;
inline constexpr std::uint32_t frame_magic = 0x4D524645;  // "EFRM"
inline constexpr std::uint32_t no_node = UINT32_MAX;
inline constexpr std::uint8_t node_has_rows = 1;  ///< flag; without it a node only spells a path

// Bounds that every reader can count on, and every writer keeps.
inline constexpr std::uint32_t snapshot_chunk_bytes = 1U
                                                      << 20;  ///< most of a chunk's rows, but one
inline constexpr std::uint64_t snapshot_span_bytes = std::uint64_t{64} << 20;  ///< same, of a span
inline constexpr std::uint32_t snapshot_span_nodes = 4096;
/// Tokens that the chains of a portable span spell, each from its root, but for a single chain.
inline constexpr std::uint64_t snapshot_path_tokens = std::uint64_t{1} << 22;
inline constexpr std::uint32_t snapshot_max_namespaces = 1U << 20;
inline constexpr std::uint32_t snapshot_max_session_tokens = 1U << 28;

/// Rows of a plane in each chunk but the last one of a span.
[[nodiscard]] constexpr std::uint32_t chunk_rows(std::uint32_t row_bytes) noexcept {
  return row_bytes >= snapshot_chunk_bytes ? 1 : snapshot_chunk_bytes / row_bytes;
}

/// What the header says, in memory.
struct SnapshotHead {
  std::array<std::uint8_t, 16> id{};
  std::array<std::uint8_t, 16> salt{};
  std::uint32_t write_version = snapshot_write_version;
  std::uint32_t read_version = snapshot_read_version;
  std::uint64_t created_unix_ns = 0;
  SnapshotUse use = SnapshotUse::portable;
  Lossy lossy = Lossy::none;
  Geometry geometry;
  ModelId model;
};

[[nodiscard]] Result<std::vector<std::byte>> encode_snapshot_head(const SnapshotHead& head);
/// How many bytes the whole head has, told by its first 256: magic, versions and features checked.
[[nodiscard]] Result<std::uint32_t> snapshot_head_bytes(std::span<const std::byte> first,
                                                        std::string_view path);
/// `bytes` is the whole head. `path` is for messages.
[[nodiscard]] Result<SnapshotHead> decode_snapshot_head(std::span<const std::byte> bytes,
                                                        std::string_view path);

/// Seals a frame header: fills magic, both checksums.
void seal_frame(FrameHeader& frame, std::span<const std::byte> payload, const SnapshotHead& head);
/// The same for a payload whose sum is known.
void seal_frame_of_sum(FrameHeader& frame, std::uint64_t payload_checksum,
                       const SnapshotHead& head);
/// "PATH: frame 7", for messages.
[[nodiscard]] std::string frame_text(std::uint64_t sequence, std::string_view path);
/// `Errc::corrupt` unless magic, checksum, sequence and kind are as they must be, and what frames
/// of this kind do not use is zero.
/// The payload is not looked at.
[[nodiscard]] Result<void> check_frame(const FrameHeader& frame, std::uint64_t sequence,
                                       const SnapshotHead& head, std::string_view path);

}  // namespace esker::detail
