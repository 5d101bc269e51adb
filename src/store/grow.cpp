// Invariants
// 1. GROW is held from looking at the segment count until it is raised; the count is stored last,
//    when the new segment is complete and synced.
// 2. A segment that a killed grower left under the next name is complete: it is checked and
//    adopted.
// 3. The leave of the home is held from before the segment is built until it is.
#include "store/grow.hpp"

#include <cerrno>

#include "base/clock.hpp"
#include "store/allowance.hpp"
#include "store/core.hpp"

namespace esker::detail {

namespace {

// A grower allocates and syncs one file: worth a moment before live blocks are evicted instead.
constexpr std::uint32_t grow_lock_wait_ms = 100;
constexpr std::uint64_t back_off_ns = 10'000'000'000;

bool refuse(Core& core, std::uint32_t count, int os_error, std::string_view reason) {
  core.growth_blocked_until_ns.store(monotonic_ns() + back_off_ns, std::memory_order_relaxed);
  core.event(EventKind::growth_failed, count * core.superblock.segment_blocks, os_error, reason);
  return false;
}

bool add_segment(Core& core) {
  auto lock = LockFile::open(core.directory, core.superblock.sharing);
  if (!lock || !lock->lock(lock_bytes::grow, grow_lock_wait_ms)) return false;
  const std::uint32_t count = core.control.segment_count().load(std::memory_order_acquire);
  if (count >= core.superblock.max_segments) return false;
  core.segments_directory.sweep_temporaries();
  auto allowed = Allowance::ask(core);
  if (!allowed) return refuse(core, count, 0, allowed.error().message);
  auto built = build_segment(core.segments_directory, core.segments.plan(), count);
  if (!built) {
    return refuse(core, count, built.error().os_error, "segment " + std::to_string(count));
  }
  core.control.segment_count().store(count + 1, std::memory_order_release);
  core.event(EventKind::segment_added, count * core.superblock.segment_blocks, 0,
             "segment " + std::to_string(count));
  core.mark_used();
  return true;
}

}  // namespace

void sweep_unfinished_segments(const LockFile& lock, const Directory& segments) noexcept {
  if (!lock.try_lock(lock_bytes::grow)) return;
  segments.sweep_temporaries();
  lock.unlock(lock_bytes::grow);
}

bool grow(Core& core) noexcept {
  const std::uint32_t count = core.control.segment_count().load(std::memory_order_acquire);
  if (count > core.segments.count()) {
    core.follow_growth();
    return core.segments.count() >= count;
  }
  if (count >= core.superblock.max_segments) return false;
  if (monotonic_ns() < core.growth_blocked_until_ns.load(std::memory_order_relaxed)) return false;
  try {
    if (!add_segment(core)) return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
  core.follow_growth();
  return core.segments.count() > count;
}

}  // namespace esker::detail
