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

/// The fixed part of a cache file's header; doc/cache_format.md. The row table, the model id and
/// the checksum follow it. Nothing of it changes after the file was made.
struct CacheFileHeader {
  std::array<char, 8> magic;
  std::uint32_t write_version;
  std::uint32_t read_version;
  std::uint64_t incompatible_features;
  std::uint64_t read_only_features;
  std::uint64_t compatible_features;
  std::array<std::uint8_t, 16> uuid;
  std::uint64_t created_unix_ns;
  std::uint64_t file_bytes;
  std::uint64_t sums_offset;
  std::uint64_t rows_offset;
  std::uint64_t token_bytes;
  std::uint32_t max_tokens;
  std::uint32_t block_tokens;
  std::uint32_t layers;
  std::uint32_t model_id_bytes;
  std::array<char, 32> dtype;
  std::array<std::uint8_t, 112> reserved;
};
static_assert(std::is_trivially_copyable_v<CacheFileHeader>);
static_assert(sizeof(CacheFileHeader) == 256);
static_assert(offsetof(CacheFileHeader, magic) == 0);
static_assert(offsetof(CacheFileHeader, write_version) == 8);
static_assert(offsetof(CacheFileHeader, read_version) == 12);
static_assert(offsetof(CacheFileHeader, incompatible_features) == 16);
static_assert(offsetof(CacheFileHeader, read_only_features) == 24);
static_assert(offsetof(CacheFileHeader, compatible_features) == 32);
static_assert(offsetof(CacheFileHeader, uuid) == 40);
static_assert(offsetof(CacheFileHeader, created_unix_ns) == 56);
static_assert(offsetof(CacheFileHeader, file_bytes) == 64);
static_assert(offsetof(CacheFileHeader, sums_offset) == 72);
static_assert(offsetof(CacheFileHeader, rows_offset) == 80);
static_assert(offsetof(CacheFileHeader, token_bytes) == 88);
static_assert(offsetof(CacheFileHeader, max_tokens) == 96);
static_assert(offsetof(CacheFileHeader, block_tokens) == 100);
static_assert(offsetof(CacheFileHeader, layers) == 104);
static_assert(offsetof(CacheFileHeader, model_id_bytes) == 108);
static_assert(offsetof(CacheFileHeader, dtype) == 112);
static_assert(offsetof(CacheFileHeader, reserved) == 144);

/// A word that proves itself at every instant: one of the two checks is that of the word, whichever
/// instruction a kill came before.
struct CheckedWord {
  std::uint64_t word;
  std::array<std::uint64_t, 2> checks;
};
static_assert(std::is_trivially_copyable_v<CheckedWord>);
static_assert(sizeof(CheckedWord) == 24);
static_assert(offsetof(CheckedWord, word) == 0);
static_assert(offsetof(CheckedWord, checks) == 8);

/// What the writer changes all the time. It means something only to those who find `identity` to
/// be that of this very file in this very boot.
struct CacheLivePage {
  std::array<char, 8> magic;
  std::uint64_t identity;
  CheckedWord length;   ///< epoch 63…32, committed positions 31…0
  CheckedWord clean;    ///< leading tokens whose sums are current: table 1 63…32, table 0 31…0
  CheckedWord touched;  ///< positions from here on were never written
  std::uint64_t durable_sequence;
  std::uint32_t writer_pid;
  std::array<char, 16> writer_command;
  std::array<std::uint8_t, 12> reserved;
};
static_assert(std::is_trivially_copyable_v<CacheLivePage>);
static_assert(sizeof(CacheLivePage) == 128);
static_assert(offsetof(CacheLivePage, magic) == 0);
static_assert(offsetof(CacheLivePage, identity) == 8);
static_assert(offsetof(CacheLivePage, length) == 16);
static_assert(offsetof(CacheLivePage, clean) == 40);
static_assert(offsetof(CacheLivePage, touched) == 64);
static_assert(offsetof(CacheLivePage, durable_sequence) == 88);
static_assert(offsetof(CacheLivePage, writer_pid) == 96);
static_assert(offsetof(CacheLivePage, writer_command) == 100);
static_assert(offsetof(CacheLivePage, reserved) == 116);

/// How a record came to be; never renumber.
enum class CacheRecordKind : std::uint32_t { sync = 1, close = 2 };

/// Says how many tokens a table of sums stands for, and proves the table.
struct CacheSyncRecord {
  std::array<char, 8> magic;
  std::uint64_t sequence;
  std::array<std::uint8_t, 16> uuid;
  std::uint64_t table_checksum;
  std::uint32_t length;
  std::uint32_t kind;
  std::uint64_t written_unix_ns;
  std::array<std::uint8_t, 64> reserved;
  std::uint64_t checksum;
};
static_assert(std::is_trivially_copyable_v<CacheSyncRecord>);
static_assert(sizeof(CacheSyncRecord) == 128);
static_assert(offsetof(CacheSyncRecord, magic) == 0);
static_assert(offsetof(CacheSyncRecord, sequence) == 8);
static_assert(offsetof(CacheSyncRecord, uuid) == 16);
static_assert(offsetof(CacheSyncRecord, table_checksum) == 32);
static_assert(offsetof(CacheSyncRecord, length) == 40);
static_assert(offsetof(CacheSyncRecord, kind) == 44);
static_assert(offsetof(CacheSyncRecord, written_unix_ns) == 48);
static_assert(offsetof(CacheSyncRecord, reserved) == 56);
static_assert(offsetof(CacheSyncRecord, checksum) == 120);

inline constexpr std::uint32_t cache_write_version = 1;
inline constexpr std::uint32_t cache_read_version = 1;
inline constexpr std::size_t cache_header_bytes = 32'768;
inline constexpr std::size_t cache_checksum_offset = cache_header_bytes - 8;
inline constexpr std::uint64_t cache_page_bytes = 4096;
inline constexpr std::uint64_t cache_live_offset = cache_header_bytes;
inline constexpr std::uint64_t cache_records_offset = cache_live_offset + cache_page_bytes;
inline constexpr std::uint64_t cache_sums_offset = cache_records_offset + 2 * cache_page_bytes;
inline constexpr std::uint32_t cache_max_tokens = 1U << 28;
inline constexpr std::uint64_t cache_max_sequence = std::uint64_t{1} << 63;
inline constexpr std::uint64_t cache_max_bytes = std::uint64_t{1} << 45;
inline constexpr std::array<char, 8> cache_live_magic{'E', 'S', 'K', 'E', 'R', 'L', 'I', 'V'};

/// The rows of one layer and plane: `max_tokens` of them, one after the other.
struct CachePlane {
  std::uint32_t layer = 0;
  Plane plane = Plane::key;
  std::uint32_t row_bytes = 0;
  std::uint64_t offset = 0;
};

/// Where the rows lie, in memory or in a file: computed, never believed from a file.
/// Invariants: planes are ascending, do not overlap, end at or before `bytes()`, and start at a
/// page, large ones at 2 MiB; `bytes()` is at most cache_max_bytes.
class CacheLayout {
 public:
  CacheLayout() = default;
  /// `Errc::invalid` names a geometry, a `max_tokens` or a size that cannot be.
  [[nodiscard]] static Result<CacheLayout> make(const Geometry& geometry, std::uint32_t max_tokens,
                                                bool in_file);

  [[nodiscard]] const std::vector<CachePlane>& planes() const noexcept { return planes_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t rows_offset() const noexcept { return rows_offset_; }
  [[nodiscard]] std::uint64_t alignment() const noexcept { return alignment_; }
  [[nodiscard]] std::uint64_t table_offset(std::uint32_t slot) const noexcept {
    return cache_sums_offset + slot * table_bytes_;
  }

 private:
  std::vector<CachePlane> planes_;
  std::uint64_t table_bytes_ = 0;
  std::uint64_t rows_offset_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t alignment_ = cache_page_bytes;
};

/// What the header of a cache file says, in memory.
struct CacheHeader {
  std::array<std::uint8_t, 16> uuid{};
  std::uint64_t created_unix_ns = 0;
  std::uint64_t read_only_features = 0;  ///< unknown ones: the file may be read, never written
  std::uint32_t max_tokens = 0;
  Geometry geometry;
  ModelId model;
  CacheLayout layout;
};

[[nodiscard]] std::vector<std::byte> encode_cache_header(const CacheHeader& header);
/// `path` is for messages; `file_bytes` is what the file has.
[[nodiscard]] Result<CacheHeader> decode_cache_header(std::span<const std::byte> bytes,
                                                      std::uint64_t file_bytes,
                                                      std::string_view path);

[[nodiscard]] CacheSyncRecord make_cache_record(const CacheHeader& header, std::uint64_t sequence,
                                                CacheRecordKind kind,
                                                std::span<const std::uint64_t> sums);
/// True when the record is whole and one of this file. Its table is not looked at.
[[nodiscard]] bool is_cache_record(const CacheSyncRecord& record,
                                   const CacheHeader& header) noexcept;
[[nodiscard]] std::uint64_t cache_table_checksum(std::span<const std::uint64_t> sums,
                                                 std::uint64_t sequence) noexcept;

}  // namespace esker::detail
