#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/result.hpp>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace esker::detail {

/// First bytes of a segment file; doc/format.md, "Segments". The region table follows.
struct SegmentHeader {
  std::array<char, 8> magic;
  std::uint32_t write_version;
  std::uint32_t read_version;
  std::array<std::uint8_t, 16> uuid;
  std::uint32_t index;
  std::uint32_t segment_blocks;
  std::uint32_t block_tokens;
  std::uint32_t planes;
  std::uint32_t block_header_bytes;
  std::uint32_t reserved0;
  std::uint64_t block_headers_offset;
  std::uint64_t file_bytes;
  std::uint64_t created_unix_ns;
  std::uint64_t geometry_digest;
  std::array<std::uint8_t, 32> reserved;
  std::uint64_t checksum;
};
static_assert(std::is_trivially_copyable_v<SegmentHeader>);
static_assert(sizeof(SegmentHeader) == 128);
static_assert(offsetof(SegmentHeader, magic) == 0);
static_assert(offsetof(SegmentHeader, write_version) == 8);
static_assert(offsetof(SegmentHeader, read_version) == 12);
static_assert(offsetof(SegmentHeader, uuid) == 16);
static_assert(offsetof(SegmentHeader, index) == 32);
static_assert(offsetof(SegmentHeader, segment_blocks) == 36);
static_assert(offsetof(SegmentHeader, block_tokens) == 40);
static_assert(offsetof(SegmentHeader, planes) == 44);
static_assert(offsetof(SegmentHeader, block_header_bytes) == 48);
static_assert(offsetof(SegmentHeader, reserved0) == 52);
static_assert(offsetof(SegmentHeader, block_headers_offset) == 56);
static_assert(offsetof(SegmentHeader, file_bytes) == 64);
static_assert(offsetof(SegmentHeader, created_unix_ns) == 72);
static_assert(offsetof(SegmentHeader, geometry_digest) == 80);
static_assert(offsetof(SegmentHeader, reserved) == 88);
static_assert(offsetof(SegmentHeader, checksum) == 120);

/// One entry of the region table.
struct RegionEntry {
  std::uint32_t layer;
  std::uint8_t plane;
  std::array<std::uint8_t, 3> reserved0;
  std::uint32_t row_bytes;
  std::uint32_t reserved1;
  std::uint64_t offset;
  std::uint64_t bytes;
};
static_assert(std::is_trivially_copyable_v<RegionEntry>);
static_assert(sizeof(RegionEntry) == 32);
static_assert(offsetof(RegionEntry, layer) == 0);
static_assert(offsetof(RegionEntry, plane) == 4);
static_assert(offsetof(RegionEntry, reserved0) == 5);
static_assert(offsetof(RegionEntry, row_bytes) == 8);
static_assert(offsetof(RegionEntry, reserved1) == 12);
static_assert(offsetof(RegionEntry, offset) == 16);
static_assert(offsetof(RegionEntry, bytes) == 24);

/// The rows of one layer and plane in a segment.
struct PlaneRegion {
  std::uint32_t layer = 0;
  Plane plane = Plane::key;
  std::uint32_t row_bytes = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Where everything lies in a segment of a given geometry: computed, never believed from a file.
/// Invariants: regions are ascending, do not overlap and end at file_bytes(); absent planes are
/// left
/// out; row of local block b, token t of a plane: offset + (b × block_tokens + t) × row_bytes.
class SegmentLayout {
 public:
  SegmentLayout() = default;
  SegmentLayout(const Geometry& geometry, std::uint32_t segment_blocks);

  [[nodiscard]] const std::vector<PlaneRegion>& planes() const noexcept { return planes_; }
  [[nodiscard]] std::uint32_t segment_blocks() const noexcept { return segment_blocks_; }
  [[nodiscard]] std::uint32_t block_tokens() const noexcept { return block_tokens_; }
  [[nodiscard]] std::uint32_t label_capacity() const noexcept { return label_capacity_; }
  [[nodiscard]] std::uint32_t block_header_bytes() const noexcept { return block_header_bytes_; }
  [[nodiscard]] std::uint64_t block_headers_offset() const noexcept {
    return block_headers_offset_;
  }
  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return file_bytes_; }
  [[nodiscard]] std::uint64_t block_bytes() const noexcept { return block_bytes_; }

  /// Index into planes(), or -1 where the layer or the plane does not exist.
  [[nodiscard]] int plane_index(std::uint32_t layer, Plane plane) const noexcept {
    const std::size_t at = std::size_t{2} * layer + static_cast<std::size_t>(plane);
    return at < index_.size() ? index_[at] : -1;
  }
  [[nodiscard]] std::uint64_t header_offset(std::uint32_t local_block) const noexcept {
    return block_headers_offset_ + std::uint64_t{local_block} * block_header_bytes_;
  }
  [[nodiscard]] std::uint64_t row_offset(std::size_t plane, std::uint32_t local_block,
                                         std::uint32_t token) const noexcept {
    const PlaneRegion& region = planes_[plane];
    return region.offset + (std::uint64_t{local_block} * block_tokens_ + token) * region.row_bytes;
  }

 private:
  std::vector<PlaneRegion> planes_;
  std::vector<int> index_;
  std::uint32_t segment_blocks_ = 0;
  std::uint32_t block_tokens_ = 0;
  std::uint32_t label_capacity_ = 0;
  std::uint32_t block_header_bytes_ = 0;
  std::uint64_t block_headers_offset_ = 0;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t block_bytes_ = 0;
};

/// Most blocks whose segment fits into `bytes`; 0 when not even one does.
[[nodiscard]] std::uint32_t segment_blocks_within(const Geometry& geometry, std::uint64_t bytes);

struct SegmentIdentity {
  std::array<std::uint8_t, 16> uuid{};
  std::uint64_t geometry_digest = 0;
};

[[nodiscard]] std::uint64_t geometry_digest(const Geometry& geometry);

/// Header and region table, ready to be written at offset 0.
[[nodiscard]] std::vector<std::byte> encode_segment_header(const SegmentLayout& layout,
                                                           const SegmentIdentity& identity,
                                                           std::uint32_t index,
                                                           std::uint64_t created_unix_ns);

[[nodiscard]] constexpr std::size_t segment_header_bytes(std::size_t planes) noexcept {
  return sizeof(SegmentHeader) + planes * sizeof(RegionEntry);
}

/// Compares a header read from a file with the computed layout. `path` is for messages.
[[nodiscard]] Result<void> check_segment_header(std::span<const std::byte> bytes,
                                                const SegmentLayout& layout,
                                                const SegmentIdentity& identity,
                                                std::uint32_t index, std::string_view path);

}  // namespace esker::detail
