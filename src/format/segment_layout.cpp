#include "format/segment_layout.hpp"

#include <algorithm>
#include <cstring>
#include <esker/version.hpp>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "format/block_header.hpp"

namespace esker::detail {

namespace {

constexpr std::array<char, 8> segment_magic{'E', 'S', 'K', 'E', 'R', 'S', 'E', 'G'};
constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t huge_page_bytes = 2ULL << 20;
constexpr std::uint64_t huge_region_bytes = 128ULL << 20;

std::uint64_t header_checksum(std::span<const std::byte> bytes, const SegmentIdentity& identity,
                              std::uint32_t index) {
  if (bytes.size() < sizeof(SegmentHeader)) return 0;
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  std::memset(copy.data() + offsetof(SegmentHeader, checksum), 0, sizeof(std::uint64_t));
  return xxh3(copy, xxh3_of(identity.uuid) ^ index);
}

}  // namespace

SegmentLayout::SegmentLayout(const Geometry& geometry, std::uint32_t segment_blocks)
    : segment_blocks_(segment_blocks), block_tokens_(geometry.block_tokens) {
  for (std::uint32_t layer = 0; layer < geometry.layers.size(); ++layer) {
    for (const Plane plane : {Plane::key, Plane::value}) {
      const std::uint32_t row_bytes = geometry.row_bytes(layer, plane);
      index_.push_back(row_bytes == 0 ? -1 : static_cast<int>(planes_.size()));
      if (row_bytes != 0) planes_.push_back(PlaneRegion{layer, plane, row_bytes, 0, 0});
    }
  }
  label_capacity_ = label_capacity_of(block_tokens_);
  block_header_bytes_ = block_header_bytes_of(block_tokens_, planes_.size());
  block_headers_offset_ = align_up(segment_header_bytes(planes_.size()), page_bytes);
  std::uint64_t end = block_headers_offset_ + std::uint64_t{segment_blocks} * block_header_bytes_;
  for (PlaneRegion& region : planes_) {
    region.bytes = std::uint64_t{segment_blocks} * block_tokens_ * region.row_bytes;
    region.offset = align_up(end, region.bytes >= huge_region_bytes ? huge_page_bytes : page_bytes);
    end = region.offset + region.bytes;
  }
  file_bytes_ = align_up(end, page_bytes);
  block_bytes_ = geometry.block_bytes();
}

std::uint32_t segment_blocks_within(const Geometry& geometry, std::uint64_t bytes) {
  std::uint32_t low = 0;
  std::uint32_t high = max_blocks_in_segment;
  while (low < high) {
    const std::uint32_t middle = low + (high - low + 1) / 2;
    if (SegmentLayout(geometry, middle).file_bytes() <= bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

std::uint64_t geometry_digest(const Geometry& geometry) {
  std::vector<std::uint32_t> words{geometry.block_tokens,
                                   static_cast<std::uint32_t>(geometry.layers.size())};
  std::array<char, 32> dtype{};
  std::copy(geometry.dtype.begin(), geometry.dtype.end(), dtype.begin());
  const std::size_t at = words.size();
  words.resize(at + dtype.size() / sizeof(std::uint32_t));
  std::memcpy(words.data() + at, dtype.data(), dtype.size());
  for (const LayerRows& rows : geometry.layers) {
    words.push_back(rows.key_row_bytes);
    words.push_back(rows.value_row_bytes);
  }
  return xxh3(std::as_bytes(std::span(words)));
}

std::vector<std::byte> encode_segment_header(const SegmentLayout& layout,
                                             const SegmentIdentity& identity, std::uint32_t index,
                                             std::uint64_t created_unix_ns) {
  std::vector<std::byte> bytes(segment_header_bytes(layout.planes().size()));
  SegmentHeader header{};
  header.magic = segment_magic;
  header.write_version = format_write_version;
  header.read_version = format_read_version;
  header.uuid = identity.uuid;
  header.index = index;
  header.segment_blocks = layout.segment_blocks();
  header.block_tokens = layout.block_tokens();
  header.planes = static_cast<std::uint32_t>(layout.planes().size());
  header.block_header_bytes = layout.block_header_bytes();
  header.block_headers_offset = layout.block_headers_offset();
  header.file_bytes = layout.file_bytes();
  header.created_unix_ns = created_unix_ns;
  header.geometry_digest = identity.geometry_digest;
  std::memcpy(bytes.data(), &header, sizeof header);
  std::size_t at = sizeof header;
  for (const PlaneRegion& region : layout.planes()) {
    RegionEntry entry{};
    entry.layer = region.layer;
    entry.plane = static_cast<std::uint8_t>(region.plane);
    entry.row_bytes = region.row_bytes;
    entry.offset = region.offset;
    entry.bytes = region.bytes;
    std::memcpy(bytes.data() + at, &entry, sizeof entry);
    at += sizeof entry;
  }
  const std::uint64_t sum = header_checksum(bytes, identity, index);
  std::memcpy(bytes.data() + offsetof(SegmentHeader, checksum), &sum, sizeof sum);
  return bytes;
}

Result<void> check_segment_header(std::span<const std::byte> bytes, const SegmentLayout& layout,
                                  const SegmentIdentity& identity, std::uint32_t index,
                                  std::string_view path) {
  constexpr std::string_view hint =
      "its blocks are not served; remove the file while nobody has the store open";
  SegmentHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != segment_magic) {
    return fail_field(Errc::corrupt, path, "magic", "something else", "ESKERSEG", hint);
  }
  if (header.uuid != identity.uuid) {
    return fail_field(Errc::corrupt, path, "uuid", "that of another store", "this store's", hint);
  }
  if (header.index != index) {
    return fail_field(Errc::corrupt, path, "index", std::to_string(header.index),
                      std::to_string(index), hint);
  }
  if (const std::uint64_t sum = header_checksum(bytes, identity, index); sum != header.checksum) {
    return fail_field(Errc::corrupt, path, "checksum", hex(header.checksum), hex(sum), hint);
  }
  if (header.read_version > format_write_version) {
    return fail_field(Errc::incompatible, path, "read_version", std::to_string(header.read_version),
                      "at most " + std::to_string(format_write_version));
  }
  // Everything else must be what we would have written; only the writer's version and time may
  // vary.
  auto expected = encode_segment_header(layout, identity, index, header.created_unix_ns);
  SegmentHeader own;
  std::memcpy(&own, expected.data(), sizeof own);
  own.write_version = header.write_version;
  own.read_version = header.read_version;
  own.checksum = header.checksum;
  std::memcpy(expected.data(), &own, sizeof own);
  if (!std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end())) {
    return fail_field(Errc::corrupt, path, "header", "not what the geometry asks for",
                      "the computed region table", hint);
  }
  return {};
}

}  // namespace esker::detail
