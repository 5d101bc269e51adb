#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <esker/kv_cache.hpp>
#include <esker/result.hpp>
#include <memory>
#include <span>
#include <string>

#include "cache/checked_word.hpp"
#include "cache/moment.hpp"
#include "format/cache_file.hpp"
#include "region/mapping.hpp"
#include "sync/lock.hpp"

namespace esker::detail {

/// An opened cache file: its mapping, the live page, and the records of syncs.
class CacheFile {
 public:
  struct Parts {
    std::string path;
    CacheAccess access = CacheAccess::write;
    CacheHeader header;
    std::uint64_t identity = 0;  ///< of this file in this boot
    Mapping mapping;
    ZeroMemory fork_guard;
  };

  /// Makes the file whole, then gives it its name.
  [[nodiscard]] static Result<std::unique_ptr<CacheFile>> create(const std::string& path,
                                                                 CacheHeader header,
                                                                 const CacheFileOptions& options);
  [[nodiscard]] static Result<std::unique_ptr<CacheFile>> open(const std::string& path,
                                                               const CacheFileOptions& options);

  explicit CacheFile(Parts parts) noexcept;
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;
  ~CacheFile();

  [[nodiscard]] const std::string& path() const noexcept { return parts_.path; }
  [[nodiscard]] const CacheHeader& header() const noexcept { return parts_.header; }
  [[nodiscard]] bool writable() const noexcept { return parts_.access == CacheAccess::write; }
  [[nodiscard]] std::byte* data() const noexcept { return parts_.mapping.data(); }
  /// 0 in a child after fork, where the mapping is not.
  [[nodiscard]] const volatile std::uint8_t* alive() const noexcept {
    return reinterpret_cast<const volatile std::uint8_t*>(parts_.fork_guard.data());
  }

  /// What is committed now.
  [[nodiscard]] Moment moment(std::memory_order order) const noexcept;

  // For the writer.

  void publish(const Moment& moment) noexcept;
  /// Sums of positions from `tokens` on are no longer those of the rows.
  void forget_sums(std::uint32_t tokens) noexcept;
  /// Positions below this may have been written, by this handle or one before it.
  [[nodiscard]] std::uint32_t touched() const noexcept { return touched_; }
  void set_touched(std::uint32_t tokens) noexcept;
  [[nodiscard]] Result<void> sync(std::uint32_t length);

 private:
  struct Recovered {
    std::uint32_t length = 0;
    int slot = -1;
  };

  void begin_writing(bool fresh) noexcept;
  void begin_reading() noexcept;
  [[nodiscard]] bool is_live() const noexcept;
  void note_writer() noexcept;

  [[nodiscard]] CacheLivePage& live() const noexcept {
    return *reinterpret_cast<CacheLivePage*>(data() + cache_live_offset);
  }
  [[nodiscard]] CheckedWordRef word(CheckedWord& at) const noexcept {
    return {at, parts_.identity};
  }
  [[nodiscard]] std::atomic_ref<std::uint64_t> live_identity() const noexcept {
    return std::atomic_ref<std::uint64_t>(live().identity);
  }

  // Records and tables of sums; see records.cpp.

  [[nodiscard]] std::uint64_t* table(int slot) const noexcept;
  [[nodiscard]] std::byte* record_at(int slot) const noexcept;
  [[nodiscard]] std::uint64_t sum_of(std::uint32_t token) const noexcept;
  void read_records() noexcept;
  [[nodiscard]] std::uint32_t proved_by(int slot) const noexcept;
  [[nodiscard]] Recovered recover() noexcept;
  void fill_table(int slot, std::uint32_t length) noexcept;
  void put_record(int slot, std::uint32_t length, CacheRecordKind kind) noexcept;
  void store_clean() noexcept;
  [[nodiscard]] bool covered_by(int slot, std::uint32_t length) const noexcept;
  [[nodiscard]] int next_slot() const noexcept;
  void close_record(std::uint32_t length) noexcept;
  [[nodiscard]] Result<void> flush(std::uint64_t offset, std::uint64_t bytes) const;

  Parts parts_;
  mutable std::atomic<bool> live_{false};
  std::uint32_t recovered_ = 0;  ///< length while `live_` is false
  std::uint32_t touched_ = 0;
  std::array<CacheSyncRecord, 2> records_{};  ///< sequence 0: none
  std::array<std::uint32_t, 2> clean_{};
  int durable_ = -1;          ///< slot of the record that a power cut must find
  bool synced_ = false;       ///< in this boot
  bool sync_failed_ = false;  ///< then the kernel may have dropped pages: never trust it again
};

}  // namespace esker::detail
