// Invariants
// 1. A lookup and a publish stamp their whole path at once, so a parent is never older than its
//    children; with deeper blocks first among equals the leaf goes first.
// 2. A pinned block is passed over before it is retired, so that a hot prefix stays findable; the
//    pin is looked at again, authoritatively, before the block becomes FREE.
// 3. The EVICT lock is economy, not safety: without it two evictors may free more than was needed.
#include "store/evict.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <tuple>

#include "store/freeze.hpp"
#include "store/kept.hpp"
#include "store/retire.hpp"

namespace esker::detail {

namespace {

constexpr std::uint32_t evict_lock_wait_ms = 20;
constexpr std::uint32_t batch_share = 64;

bool pinned_by_anyone(const Core& core, std::uint32_t block) noexcept {
  const std::uint32_t seats = core.control.seats_in_use();
  for (std::uint32_t seat = 0; seat < seats; ++seat) {
    const AtomicWord row(core.control.row(seat)[block >> 6]);
    if ((row.load(std::memory_order_relaxed) >> (block & 63) & 1) != 0) return true;
  }
  return false;
}

/// A READY block that lost the hint by which it is found can only be reached by evicting it.
bool lost(const Core& core, std::uint32_t block, std::uint32_t generation) {
  const std::byte* bytes = core.segments.header(block);
  if (bytes == nullptr) return false;
  const auto& header = *reinterpret_cast<const BlockHeader*>(bytes);
  if (header.generation != generation ||
      !well_formed(header, core.block_tokens(), core.segments.layout().block_header_bytes())) {
    return true;
  }
  return !has_hint(core.control, first_hint(header, core.block_tokens()), block, generation);
}

/// Hints are lost only by displacement, which is counted: mostly there is nothing to look for.
bool any_displaced(const Core& core) noexcept {
  for (std::uint32_t seat = 0; seat < core.control.seats_in_use(); ++seat) {
    if (core.control.counter(seat, Counter::displaced_hints).load(std::memory_order_relaxed) != 0) {
      return true;
    }
  }
  return false;
}

auto order_of(const Victim& victim) {
  return std::tuple(victim.touch.stamp, TouchWord::max_depth - victim.touch.depth);
}

std::uint32_t retire_first(Core& core, std::vector<Victim>& candidates, std::size_t count) {
  std::uint32_t retired = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Victim& victim = candidates[i];
    if (evict_one(core, victim)) ++retired;
  }
  core.count(Counter::evicted_blocks, retired);
  return retired;
}

}  // namespace

bool evict_one(Core& core, const Victim& victim) noexcept {
  if (pinned_by_anyone(core, victim.block)) return false;
  // Whoever keeps a block marks it before it lets go of its pin.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (is_kept(core, victim.block)) return false;
  return retire(core, victim.block, {victim.generation, BlockState::ready, 0});
}

std::vector<Victim> victims(Core& core) {
  std::vector<Victim> found;
  for (std::uint32_t block = 0; block < core.known_blocks(); ++block) {
    const BlockWord word = core.word(block, std::memory_order_relaxed);
    if (word.state != BlockState::ready || word.owner != 0) continue;
    if (pinned_by_anyone(core, block)) continue;
    TouchWord touch = TouchWord::unpack(core.control.touch(block).load(std::memory_order_relaxed));
    if (touch.kept) continue;
    found.push_back(Victim{block, word.generation, touch});
  }
  std::sort(found.begin(), found.end(),
            [](const Victim& a, const Victim& b) { return order_of(a) < order_of(b); });
  return found;
}

std::uint32_t evict_for(Core& core, std::uint32_t wanted) noexcept {
  core.mark_used();
  try {
    auto lock = LockFile::open(core.directory, core.superblock.sharing);
    if (lock && lock->lock(lock_bytes::evict, evict_lock_wait_ms)) {
      // Whoever held the lock before us may have made room for all.
      const std::uint32_t freed = sweep(core);
      if (freed >= wanted) return freed;
    }
    std::vector<Victim> candidates = victims(core);
    if (any_displaced(core)) {
      std::stable_partition(candidates.begin(), candidates.end(), [&](const Victim& victim) {
        return lost(core, victim.block, victim.generation);
      });
    }
    const std::uint32_t batch = core.known_blocks() / batch_share;
    const std::size_t count = std::min<std::size_t>(candidates.size(), std::max(wanted, batch));
    std::uint32_t freed = 0;
    if (core.options.freeze_evicted) {
      freed = freeze_victims(core, std::span(candidates).first(count));
    }
    retire_first(core, candidates, count);
    return freed + sweep(core);
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

}  // namespace esker::detail
