// Invariants
// 1. A seat is reaped only by the holder of its byte lock, from before the first read until after
//    EMPTY is written. The kernel grants that lock only when the owner's address space is gone.
// 2. Every step is idempotent: a reaper that dies is repeated by the next.
// 3. While settling, pins go into the reaper's own row. When a handle reaps its predecessor that
//    row is the one it is about to zero, so the row is zeroed after the blocks, and EMPTY comes
//    last.
#include "store/reap.hpp"

#include <atomic>

#include "base/guarded.hpp"
#include "store/grow.hpp"
#include "store/retire.hpp"
#include "store/settle.hpp"

namespace esker::detail {

namespace {

void settle_for_dead(Core& core, std::uint32_t block, BlockWord seen) noexcept {
  core.pins.pin(block);
  if (core.word(block, std::memory_order_seq_cst) == seen) {
    if (core.prover.prove(block, seen.generation) == nullptr) {
      static_cast<void>(transition::retire(core.control.word(block), seen));
    } else {
      const SettleResult result = settle(core, PinnedBlock{block, seen.generation, 0}, seen.owner);
      if (result.outcome == Settled::theirs) core.pins.unpin(result.winner.pinned.block);
    }
  }
  core.pins.unpin(block);
}

/// Frees what `owner` had reserved and settles what it had published.
void reap_blocks(Core& core, std::uint32_t owner) noexcept {
  const std::uint32_t blocks = core.control.layout().max_blocks;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const BlockWord seen = core.word(block, std::memory_order_acquire);
    if (seen.owner != owner) continue;
    switch (seen.state) {
      case BlockState::reserved:
        static_cast<void>(transition::abort(core.control.word(block), seen.generation, owner));
        break;
      case BlockState::ready:
        settle_for_dead(core, block, seen);
        break;
      default:
        static_cast<void>(transition::disown(core.control.word(block), seen));
        break;
    }
  }
}

void zero_row(Core& core, std::uint32_t seat) noexcept {
  std::uint64_t* row = core.control.row(seat);
  const std::uint32_t words = core.control.layout().row_bytes / 8;
  for (std::uint32_t i = 0; i < words; ++i) {
    // Rows are sparse: a store would bring in pages that were never used.
    AtomicWord word(row[i]);
    if (word.load(std::memory_order_relaxed) != 0) word.store(0, std::memory_order_relaxed);
  }
}

void empty_seat(Core& core, std::uint32_t seat) noexcept {
  core.control.phase(seat).store(static_cast<std::uint32_t>(SeatPhase::reaping),
                                 std::memory_order_relaxed);
  reap_blocks(core, seat + 1);
  zero_row(core, seat);
  core.control.phase(seat).store(static_cast<std::uint32_t>(SeatPhase::empty),
                                 std::memory_order_release);
}

bool occupied(const Core& core, std::uint32_t seat) noexcept {
  return core.control.phase(seat).load(std::memory_order_acquire) !=
         static_cast<std::uint32_t>(SeatPhase::empty);
}

/// Without memory for it nobody is reaped; whoever comes next tries again.
Result<LockFile> open_lock(const Core& core) noexcept {
  return guarded([&core] { return LockFile::open(core.directory, core.superblock.sharing); });
}

bool reap_if_dead(Core& core, const LockFile& lock, std::uint32_t seat) noexcept {
  if (seat == core.seat || !occupied(core, seat)) return false;
  if (!lock.try_lock(lock_bytes::seat + seat)) return false;
  const bool still = occupied(core, seat);
  if (still) {
    empty_seat(core, seat);
    core.count(Counter::reaped_seats);
    core.event(EventKind::seat_reaped, 0, 0, "seat " + std::to_string(seat));
  }
  lock.unlock(lock_bytes::seat + seat);
  return still;
}

}  // namespace

void reap_predecessor(Core& core) noexcept {
  if (occupied(core, core.seat)) {
    core.count(Counter::reaped_seats);
    core.event(EventKind::seat_reaped, 0, 0, "own seat's predecessor");
  }
  empty_seat(core, core.seat);
}

std::uint32_t reap_dead(Core& core) noexcept {
  auto lock = open_lock(core);
  if (!lock) return 0;
  std::uint32_t reaped = 0;
  for (std::uint32_t seat = 0; seat < core.control.seats_in_use(); ++seat) {
    if (reap_if_dead(core, *lock, seat)) ++reaped;
  }
  if (reaped > 0) sweep_unfinished_segments(*lock, core.segments_directory);
  return reaped;
}

std::uint32_t reap_pinners(Core& core, std::uint32_t line, std::uint64_t wanted) noexcept {
  std::optional<LockFile> lock;
  std::uint32_t reaped = 0;
  for (std::uint32_t seat = 0; seat < core.control.seats_in_use(); ++seat) {
    const AtomicWord row(core.control.row(seat)[line]);
    if (seat == core.seat || (row.load(std::memory_order_relaxed) & wanted) == 0) continue;
    if (!lock) {
      auto opened = open_lock(core);
      if (!opened) return reaped;
      lock.emplace(std::move(*opened));
    }
    if (reap_if_dead(core, *lock, seat)) ++reaped;
  }
  return reaped;
}

void leave_seat(Core& core) noexcept { empty_seat(core, core.seat); }

}  // namespace esker::detail
