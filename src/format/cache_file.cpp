#include "format/cache_file.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "format/shape_table.hpp"

namespace esker::detail {

namespace {

constexpr std::array<char, 8> cache_magic{'E', 'S', 'K', 'E', 'R', 'K', 'V', 'C'};
constexpr std::array<char, 8> record_magic{'E', 'S', 'K', 'E', 'R', 'S', 'Y', 'N'};
static_assert(sizeof(CacheFileHeader) == shape_table_offset);
constexpr std::uint64_t large_region_bytes = std::uint64_t{128} << 20;
constexpr std::uint64_t large_alignment = std::uint64_t{2} << 20;

Failure bad(std::string_view path, std::string_view field, const std::string& found,
            const std::string& expected) {
  return fail_field(Errc::corrupt, path, field, found, expected,
                    "the file is damaged or no cache: restore it from a copy, or remove it");
}

Result<CacheFileHeader> check_frame(std::span<const std::byte> bytes, std::string_view path) {
  CacheFileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != cache_magic) return bad(path, "magic", "something else", "ESKERKVC");
  std::uint64_t stored = 0;
  std::memcpy(&stored, bytes.data() + cache_checksum_offset, sizeof stored);
  if (const std::uint64_t sum = xxh3(bytes.first(cache_checksum_offset)); sum != stored) {
    return bad(path, "header checksum", hex(stored), hex(sum));
  }
  if (header.read_version > cache_write_version) {
    return fail_field(Errc::incompatible, path, "read_version", std::to_string(header.read_version),
                      "at most " + std::to_string(cache_write_version),
                      "this cache was written by a newer Esker; nothing was changed");
  }
  if (header.incompatible_features != 0) {
    return fail_field(Errc::incompatible, path, "incompatible_features",
                      hex(header.incompatible_features), "0",
                      "this cache uses a feature that this Esker does not know");
  }
  return header;
}

Result<void> read_layout(const CacheFileHeader& header, std::span<const std::byte> bytes,
                         std::string_view path, CacheHeader& out) {
  const auto text = bytes.first(cache_checksum_offset);
  auto shape =
      read_shape({header.layers, header.block_tokens, header.model_id_bytes, header.dtype}, text);
  if (!shape) return bad(path, shape.error().field, shape.error().found, shape.error().expected);
  if (!all_zero(text.subspan(shape->end)) || !all_zero(std::as_bytes(std::span(header.reserved)))) {
    return bad(path, "reserved", "not zero", "zero");
  }
  out.geometry = std::move(shape->geometry);
  out.model = std::move(shape->model);
  auto layout = CacheLayout::make(out.geometry, header.max_tokens, true);
  if (!layout) return bad(path, "geometry", layout.error().message, "a valid one");
  out.layout = std::move(*layout);
  return {};
}

}  // namespace

Result<CacheLayout> CacheLayout::make(const Geometry& geometry, std::uint32_t max_tokens,
                                      bool in_file) {
  if (auto valid = geometry.validate(); !valid) return tl::make_unexpected(valid.error());
  if (max_tokens == 0 || max_tokens > cache_max_tokens) {
    return fail(Errc::invalid, "max_tokens is " + std::to_string(max_tokens) + ", allowed is 1…" +
                                   std::to_string(cache_max_tokens));
  }
  CacheLayout layout;
  layout.table_bytes_ = align_up(std::uint64_t{8} * max_tokens, cache_page_bytes);
  std::uint64_t end = in_file ? cache_sums_offset + 2 * layout.table_bytes_ : 0;
  for (std::uint32_t layer = 0; layer < geometry.layers.size(); ++layer) {
    for (const Plane plane : {Plane::key, Plane::value}) {
      const std::uint32_t row_bytes = geometry.row_bytes(layer, plane);
      if (row_bytes == 0) continue;
      // At most 2^24 × 2^28 bytes a plane and 2^12 planes: below 2^64, and refused much earlier.
      const std::uint64_t region_bytes = std::uint64_t{row_bytes} * max_tokens;
      const bool large = region_bytes >= large_region_bytes;
      if (large) layout.alignment_ = large_alignment;
      const std::uint64_t offset = align_up(end, large ? large_alignment : cache_page_bytes);
      if (layout.planes_.empty()) layout.rows_offset_ = offset;
      layout.planes_.push_back({layer, plane, row_bytes, offset});
      end = offset + region_bytes;
      if (end > cache_max_bytes) {
        return fail(Errc::invalid,
                    std::to_string(max_tokens) + " tokens of " + size_text(geometry.token_bytes()) +
                        " need more than the largest cache, " + size_text(cache_max_bytes));
      }
    }
  }
  layout.bytes_ = align_up(end, cache_page_bytes);
  return layout;
}

std::vector<std::byte> encode_cache_header(const CacheHeader& header) {
  std::vector<std::byte> bytes(cache_header_bytes);
  const std::string model = header.model.text();
  CacheFileHeader out{};
  out.magic = cache_magic;
  out.write_version = cache_write_version;
  out.read_version = cache_read_version;
  out.uuid = header.uuid;
  out.created_unix_ns = header.created_unix_ns;
  out.file_bytes = header.layout.bytes();
  out.sums_offset = cache_sums_offset;
  out.rows_offset = header.layout.rows_offset();
  out.token_bytes = header.geometry.token_bytes();
  out.max_tokens = header.max_tokens;
  out.block_tokens = header.geometry.block_tokens;
  out.layers = static_cast<std::uint32_t>(header.geometry.layers.size());
  out.model_id_bytes = static_cast<std::uint32_t>(model.size());
  std::copy(header.geometry.dtype.begin(), header.geometry.dtype.end(), out.dtype.begin());
  std::memcpy(bytes.data(), &out, sizeof out);
  write_shape(header.geometry, model, bytes);
  const std::uint64_t sum = xxh3(std::span(bytes).first(cache_checksum_offset));
  std::memcpy(bytes.data() + cache_checksum_offset, &sum, sizeof sum);
  return bytes;
}

Result<CacheHeader> decode_cache_header(std::span<const std::byte> bytes, std::uint64_t file_bytes,
                                        std::string_view path) {
  if (bytes.size() != cache_header_bytes) {
    return bad(path, "file size", std::to_string(bytes.size()),
               "at least " + std::to_string(cache_header_bytes));
  }
  auto header = check_frame(bytes, path);
  if (!header) return tl::make_unexpected(std::move(header).error());
  CacheHeader out;
  if (auto ok = read_layout(*header, bytes, path, out); !ok) return tl::make_unexpected(ok.error());
  struct Expected {
    std::string_view field;
    std::uint64_t found;
    std::uint64_t expected;
  };
  for (const Expected& field :
       {Expected{"file_bytes", header->file_bytes, out.layout.bytes()},
        Expected{"sums_offset", header->sums_offset, cache_sums_offset},
        Expected{"rows_offset", header->rows_offset, out.layout.rows_offset()},
        Expected{"token_bytes", header->token_bytes, out.geometry.token_bytes()},
        Expected{"file size", file_bytes, out.layout.bytes()}}) {
    if (field.found == field.expected) continue;
    return bad(path, field.field, std::to_string(field.found), std::to_string(field.expected));
  }
  out.uuid = header->uuid;
  out.created_unix_ns = header->created_unix_ns;
  out.read_only_features = header->read_only_features;
  out.max_tokens = header->max_tokens;
  return out;
}

std::uint64_t cache_table_checksum(std::span<const std::uint64_t> sums,
                                   std::uint64_t sequence) noexcept {
  return xxh3(std::as_bytes(sums), sequence);
}

CacheSyncRecord make_cache_record(const CacheHeader& header, std::uint64_t sequence,
                                  CacheRecordKind kind, std::span<const std::uint64_t> sums) {
  CacheSyncRecord record{};
  record.magic = record_magic;
  record.sequence = sequence;
  record.uuid = header.uuid;
  record.table_checksum = cache_table_checksum(sums, sequence);
  record.length = static_cast<std::uint32_t>(sums.size());
  record.kind = static_cast<std::uint32_t>(kind);
  record.written_unix_ns = unix_ns();
  record.checksum =
      xxh3(std::as_bytes(std::span(&record, 1)).first(offsetof(CacheSyncRecord, checksum)));
  return record;
}

bool is_cache_record(const CacheSyncRecord& record, const CacheHeader& header) noexcept {
  const auto covered =
      std::as_bytes(std::span(&record, 1)).first(offsetof(CacheSyncRecord, checksum));
  return record.magic == record_magic && record.checksum == xxh3(covered) &&
         record.uuid == header.uuid && record.length <= header.max_tokens && record.sequence != 0 &&
         record.sequence < cache_max_sequence &&
         (record.kind == static_cast<std::uint32_t>(CacheRecordKind::sync) ||
          record.kind == static_cast<std::uint32_t>(CacheRecordKind::close)) &&
         all_zero(std::as_bytes(std::span(record.reserved)));
}

}  // namespace esker::detail
