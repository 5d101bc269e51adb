#pragma once

#include <atomic>
#include <cstdint>
#include <esker/options.hpp>
#include <esker/result.hpp>
#include <esker/stats.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "format/superblock.hpp"
#include "index/hints.hpp"
#include "index/proof.hpp"
#include "region/segment_map.hpp"
#include "store/prefix_body.hpp"
#include "sync/control.hpp"
#include "sync/lock.hpp"
#include "sync/pins.hpp"
#include "sync/seat.hpp"

namespace esker::detail {

struct ColdTier;

/// One opened handle: what Store, Prefix and Reservation share. It dies with the last of them.
class Core {
 public:
  struct Parts {
    Directory directory;
    Directory segments_directory;
    Superblock superblock;
    Control control;
    SeatLock seat_lock;  ///< unused by `Access::inspect`
    Options options;
  };

  explicit Core(Parts parts);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  /// Allocates what may fail. Nothing else may be called before.
  [[nodiscard]] Result<void> prepare();
  /// Maps the segments that exist. In `inspect` mode and for rebuilds the count comes from the
  /// directory, else from `control`.
  void map_segments(std::uint32_t count) noexcept;

  /// True in a child after fork: nothing of this handle may be touched there.
  [[nodiscard]] bool forked() const noexcept {
    return *reinterpret_cast<const volatile std::uint8_t*>(fork_guard_.data()) == 0;
  }
  /// `Errc::forked`, or `Errc::invalid` where this handle may not write.
  [[nodiscard]] Result<void> usable(bool for_writing) const;

  void count(Counter which, std::uint64_t amount = 1) const noexcept {
    control.counter(seat, which).fetch_add(amount, std::memory_order_relaxed);
  }
  void event(EventKind kind, std::uint32_t block, std::int32_t os_error,
             std::string_view note) const noexcept;

  [[nodiscard]] BlockWord word(std::uint32_t block,
                               std::memory_order order = std::memory_order_acquire) const noexcept {
    return BlockWord::unpack(control.word(block).load(order));
  }
  /// Blocks in segments that this handle knows.
  [[nodiscard]] std::uint32_t known_blocks() const noexcept {
    return segments.count() * superblock.segment_blocks;
  }
  [[nodiscard]] std::uint32_t block_tokens() const noexcept {
    return superblock.geometry.block_tokens;
  }
  [[nodiscard]] std::uint32_t me() const noexcept { return seat + 1; }
  [[nodiscard]] NodeId new_node() noexcept {
    return {node_random_, next_node_.fetch_add(1, std::memory_order_relaxed)};
  }
  /// Notes that the store is in use, unless this handle only looks after it.
  void mark_used() const noexcept;
  /// Maps segments that other handles added since.
  void follow_growth() noexcept;

  /// The payload of this block, in this life, was checked by this handle.
  [[nodiscard]] std::atomic_ref<std::uint32_t> verified(std::uint32_t block) const noexcept {
    return std::atomic_ref<std::uint32_t>(verified_words()[block]);
  }

  Directory directory;
  Directory segments_directory;
  Superblock superblock;
  Control control;
  Options options;
  std::uint32_t seat = 0;
  SegmentMap segments;
  PinTable pins;
  Prover prover;
  mutable PrefixPool bodies;
  std::unique_ptr<ColdTier> cold;
  std::atomic<std::uint32_t> allocation_cursor{0};
  std::atomic<std::uint64_t> growth_blocked_until_ns{0};

 private:
  [[nodiscard]] std::uint32_t* per_block(std::uint32_t which) const noexcept {
    return reinterpret_cast<std::uint32_t*>(per_block_.data()) +
           std::size_t{which} * superblock.max_blocks();
  }
  [[nodiscard]] std::uint32_t* verified_words() const noexcept { return per_block(2); }

  SeatLock seat_lock_;
  ZeroMemory fork_guard_;
  ZeroMemory per_block_;  ///< pin counts, proved generations, verified generations
  std::uint64_t node_random_ = 0;
  std::atomic<std::uint64_t> next_node_{1};
};

/// The plan for all segments of a store.
[[nodiscard]] SegmentPlan segment_plan(const Superblock& superblock);

}  // namespace esker::detail
