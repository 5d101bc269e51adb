#pragma once

#include <atomic>
#include <cstdint>
#include <esker/kv_cache.hpp>
#include <esker/result.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/file.hpp"
#include "cache/moment.hpp"
#include "format/cache_file.hpp"
#include "region/mapping.hpp"

namespace esker::detail {

/// One layer: where its rows are, and how many of them were stored, committed or not.
struct CacheLayer {
  std::byte* key_rows = nullptr;
  std::byte* value_rows = nullptr;
  std::uint32_t key_row_bytes = 0;
  std::uint32_t value_row_bytes = 0;
  std::atomic<std::uint32_t> stored{0};
};

/// What a KvCache is, whatever memory it lies in.
class CacheCore {
 public:
  [[nodiscard]] static Result<std::unique_ptr<CacheCore>> in_memory(const Geometry& geometry,
                                                                    std::uint32_t max_tokens,
                                                                    const ModelId& model);
  [[nodiscard]] static Result<std::unique_ptr<CacheCore>> in_file(std::unique_ptr<CacheFile> file);

  CacheCore(const CacheCore&) = delete;
  CacheCore& operator=(const CacheCore&) = delete;

  [[nodiscard]] const Geometry& geometry() const noexcept { return header().geometry; }
  [[nodiscard]] const ModelId& model() const noexcept { return header().model; }
  [[nodiscard]] std::uint32_t max_tokens() const noexcept { return header().max_tokens; }
  [[nodiscard]] const std::vector<CachePlane>& planes() const noexcept {
    return header().layout.planes();
  }
  [[nodiscard]] std::uint32_t layer_count() const noexcept { return layer_count_; }
  /// "PATH" or "this cache", for messages.
  [[nodiscard]] std::string named() const;
  [[nodiscard]] const CacheFile* file() const noexcept { return file_.get(); }

  [[nodiscard]] bool forked() const noexcept { return *alive_ == 0; }
  /// `Errc::forked`, or `Errc::invalid` where this handle only reads.
  [[nodiscard]] Result<void> usable(bool for_writing) const;

  /// What is committed: of this handle's own writing, or of another process'.
  [[nodiscard]] Moment moment(std::memory_order order = std::memory_order_acquire) const noexcept {
    return reading_ ? file_->moment(order) : Moment::unpack(word_.load(order));
  }
  /// Rows that a layer shows.
  [[nodiscard]] std::uint32_t stored(std::uint32_t layer) const noexcept;
  [[nodiscard]] std::byte* row(const CachePlane& plane, std::uint32_t token) const noexcept {
    return base_ + plane.offset + std::uint64_t{token} * plane.row_bytes;
  }
  [[nodiscard]] std::span<const std::byte> rows(std::uint32_t layer, Plane plane) const noexcept;

  /// Runs `copy(moment)` until rows stayed as they were all the while; `Errc::busy` after many
  /// attempts in vain.
  template <class F>
  [[nodiscard]] Result<void> consistently(F&& copy) const {
    constexpr int most_attempts = 64;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      const Moment before = moment();
      if (auto done = copy(before); !done) return done;
      std::atomic_thread_fence(std::memory_order_acquire);
      if (moment(std::memory_order_relaxed).same_sequence(before)) return {};
    }
    return never_still();
  }

  // For the writer. Arguments are checked before.

  /// Stores one row per plane at the end, if everything fits and is ready; false: see `prepare`.
  [[nodiscard]] bool put(std::uint32_t layer, std::span<const std::byte> key_row,
                         std::span<const std::byte> value_row) noexcept;
  void put_rows(std::uint32_t layer, std::uint32_t rows, std::span<const std::byte> key_rows,
                std::span<const std::byte> value_rows) noexcept;
  /// Makes rows below `end` ready to be written.
  [[nodiscard]] Result<void> prepare(std::uint32_t end);
  /// The first layer that has stored less than `end` rows, or layer_count().
  [[nodiscard]] std::uint32_t first_lacking(std::uint32_t end) const noexcept;
  /// Commits what was stored below `end`.
  void commit(std::uint32_t end) noexcept;
  /// Drops rows from `tokens` on, committed or not. May throw for want of memory, before it changes
  /// anything.
  void drop(std::uint32_t tokens);
  /// Drops all and zeroes whatever was written.
  void wipe();
  /// All layers have rows below `end`: for copies that come plane by plane.
  void set_stored(std::uint32_t end) noexcept;
  /// Rows below `end` may have been written, though none of them was stored.
  void note_written(std::uint32_t end) noexcept { highest_ = highest_ < end ? end : highest_; }
  [[nodiscard]] Result<void> sync();

  [[nodiscard]] KvMark mark() const noexcept;
  [[nodiscard]] bool stale(const KvMark& mark) const noexcept;
  [[nodiscard]] bool made(const KvMark& mark) const noexcept { return mark.cache == id_; }

 private:
  /// Positions from `tokens` on were dropped, as the cut number `serial`.
  struct Cut {
    std::uint64_t serial = 0;
    std::uint32_t tokens = 0;
  };

  CacheCore() = default;
  [[nodiscard]] const CacheHeader& header() const noexcept {
    return file_ != nullptr ? file_->header() : own_header_;
  }
  void set_up(std::byte* base);
  [[nodiscard]] Result<void> never_still() const;
  void publish(const Moment& moment) noexcept;
  [[nodiscard]] std::uint32_t most_stored() const noexcept;

  CacheHeader own_header_;  ///< of a cache in private memory
  ZeroMemory memory_;
  std::unique_ptr<CacheFile> file_;
  const volatile std::uint8_t* alive_ = nullptr;
  bool reading_ = false;
  std::byte* base_ = nullptr;
  std::uint32_t layer_count_ = 0;
  std::unique_ptr<CacheLayer[]> layers_;
  std::atomic<std::uint64_t> word_{0};  ///< a Moment; the writer's own copy of what the file says
  std::uint32_t ready_ = 0;             ///< rows below can be written at once
  std::uint32_t populated_ = 0;         ///< pages below are there, as far as this handle knows
  std::uint32_t highest_ = 0;           ///< rows from here on were never written, in private memory
  std::uint64_t id_ = 0;
  std::atomic<std::uint64_t> serial_{0};
  std::vector<Cut> cuts_;  ///< both members ascending: an earlier, higher cut says nothing more
};

}  // namespace esker::detail
