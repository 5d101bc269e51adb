#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <esker/result.hpp>
#include <span>
#include <string_view>

#include "format/control_layout.hpp"
#include "region/directory.hpp"
#include "region/mapping.hpp"
#include "sync/block_word.hpp"

namespace esker::detail {

/// What a control file must agree on to be used: another boot, copy or shape means another file.
struct ControlToken {
  std::array<std::uint8_t, 16> boot_id{};
  std::array<std::uint8_t, 16> uuid{};
  ControlLayout layout;
};

/// Counters of a seat. Never renumber: they live in the control file, at most 24.
enum class Counter : std::uint8_t {
  lookups,
  lookup_tokens,
  hit_tokens,
  misses,
  degraded_misses,
  reserved_tokens,
  published_blocks,
  published_tokens,
  adopted_blocks,
  dropped_blocks,
  short_reservations,
  evicted_blocks,
  removed_blocks,
  superseded_blocks,
  bad_blocks,
  reaped_seats,
  displaced_hints,
  copied_bytes,
  verified_bytes,
  written_bytes,
  frozen_blocks,
  thawed_blocks,
};

/// Touch word: stamp 63…32, depth in blocks 31…12, kept 11, wipe 10, frequency 7…0.
struct TouchWord {
  std::uint32_t stamp = 0;
  std::uint32_t depth = 0;
  bool kept = false;  ///< a kept session holds it: not evicted
  bool wipe = false;  ///< removed while a reader held it: to be wiped when it is FREE
  std::uint8_t frequency = 0;

  static constexpr std::uint32_t max_depth = (1U << 20) - 1;
  static constexpr std::uint64_t kept_bit = 1U << 11;
  static constexpr std::uint64_t wipe_bit = 1U << 10;

  [[nodiscard]] constexpr std::uint64_t pack() const noexcept {
    return std::uint64_t{stamp} << 32 | std::uint64_t{depth < max_depth ? depth : max_depth} << 12 |
           std::uint64_t{kept} << 11 | std::uint64_t{wipe} << 10 | frequency;
  }
  [[nodiscard]] static constexpr TouchWord unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word >> 32),
            static_cast<std::uint32_t>(word >> 12 & max_depth), (word >> 11 & 1) != 0,
            (word >> 10 & 1) != 0, static_cast<std::uint8_t>(word & 0xFF)};
  }
};

/// The shared state of this boot: seats, block words, pins, hints, counters, events.
/// Everything read from it is untrusted: loaded once and range-checked by the caller.
class Control {
 public:
  using Bucket = std::span<std::uint64_t, hints_per_bucket>;

  Control() noexcept = default;

  /// Opens `control` when its token is ours; `Errc::incompatible` or `corrupt` when it cannot be
  /// used.
  [[nodiscard]] static Result<Control> open(const Directory& store, const ControlToken& token,
                                            Sharing sharing);
  /// A new control file under a temporary name, valid and empty.
  [[nodiscard]] static Result<Control> build(const Directory& store, const ControlToken& token,
                                             Sharing sharing);
  /// Gives a built control its name, in place of whatever stood there.
  [[nodiscard]] Result<void> publish(const Directory& store);
  /// Private state for handles that must not write to the store.
  [[nodiscard]] static Result<Control> build_private(const ControlToken& token);

  [[nodiscard]] const ControlLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::uint64_t built_unix_ns() const noexcept { return header()->built_unix_ns; }

  [[nodiscard]] AtomicWord word(std::uint32_t block) const noexcept {
    return AtomicWord(area(layout_.words_offset)[block]);
  }
  [[nodiscard]] AtomicWord check(std::uint32_t block) const noexcept {
    return AtomicWord(area(layout_.checks_offset)[block]);
  }
  [[nodiscard]] AtomicWord touch(std::uint32_t block) const noexcept {
    return AtomicWord(area(layout_.touches_offset)[block]);
  }
  /// The pin bitmap of a seat: bit b & 63 of word b >> 6.
  [[nodiscard]] std::uint64_t* row(std::uint32_t seat) const noexcept {
    return area(layout_.rows_offset + std::uint64_t{seat} * layout_.row_bytes);
  }
  [[nodiscard]] Bucket bucket(std::uint64_t hash) const noexcept {
    const std::uint64_t index = (hash & 0xFFFF'FFFFU) * layout_.buckets >> 32;
    return Bucket(area(layout_.hints_offset) + index * hints_per_bucket, hints_per_bucket);
  }
  [[nodiscard]] SeatRecord& seat(std::uint32_t index) const noexcept {
    return *reinterpret_cast<SeatRecord*>(base_ + layout_.slots_offset +
                                          std::uint64_t{index} * sizeof(SeatRecord));
  }
  [[nodiscard]] std::atomic_ref<std::uint32_t> phase(std::uint32_t seat_index) const noexcept {
    return std::atomic_ref<std::uint32_t>(seat(seat_index).phase);
  }
  [[nodiscard]] AtomicWord counter(std::uint32_t seat_index, Counter which) const noexcept {
    return AtomicWord(seat(seat_index).counters[static_cast<std::size_t>(which)]);
  }
  [[nodiscard]] std::atomic_ref<std::uint32_t> segment_count() const noexcept {
    return std::atomic_ref<std::uint32_t>(header()->segment_count);
  }
  [[nodiscard]] std::atomic_ref<std::uint32_t> seats_high_water() const noexcept {
    return std::atomic_ref<std::uint32_t>(header()->slots_high_water);
  }
  [[nodiscard]] AtomicWord event_sequence() const noexcept {
    return AtomicWord(header()->event_sequence);
  }
  [[nodiscard]] std::uint64_t* event_words(std::uint64_t sequence) const noexcept {
    return area(layout_.events_offset + sequence % event_ring_entries * sizeof(EventRecord));
  }

  /// Seats that may have pins: scans stop there. Load it after the fence that follows a retirement.
  [[nodiscard]] std::uint32_t seats_in_use() const noexcept {
    const std::uint32_t high = seats_high_water().load(std::memory_order_relaxed);
    return high < layout_.seats ? high : layout_.seats;
  }

  void abandon() noexcept { mapping_.abandon(); }

 private:
  [[nodiscard]] ControlHeader* header() const noexcept {
    return reinterpret_cast<ControlHeader*>(base_);
  }
  [[nodiscard]] std::uint64_t* area(std::uint64_t offset) const noexcept {
    return reinterpret_cast<std::uint64_t*>(base_ + offset);
  }

  std::byte* base_ = nullptr;
  ControlLayout layout_;
  Mapping mapping_;
  ZeroMemory memory_;
  File file_;  ///< while it is being built
};

}  // namespace esker::detail
