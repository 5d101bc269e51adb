// Invariants
// 1. The row's bit is set whenever a count is above zero and not BUSY; the changes 0 → 1 and 1 → 0
//    pass through BUSY, during which the other threads of this handle wait.
// 2. Only this handle writes its row; a reaper does so after the handle's death.
// 3. The bit is set (seq_cst) before the word is re-checked, and cleared (release) after the last
//    load of the block's bytes.
#include "sync/pins.hpp"

#include <sched.h>

namespace esker::detail {

namespace {

constexpr std::uint32_t busy = 1U << 31;

void relax(std::uint32_t round) noexcept {
  if (round > 64) {
    sched_yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void PinTable::pin(std::uint32_t block) const noexcept {
  const std::atomic_ref<std::uint32_t> count(counts_[block]);
  const std::atomic_ref<std::uint64_t> row(row_[block >> 6]);
  std::uint32_t seen = count.load(std::memory_order_relaxed);
  for (std::uint32_t round = 0;; ++round) {
    if (seen == busy) {
      relax(round);
      seen = count.load(std::memory_order_relaxed);
    } else if (count.compare_exchange_weak(seen, seen == 0 ? busy : seen + 1,
                                           std::memory_order_acquire, std::memory_order_relaxed)) {
      break;
    }
  }
  if (seen != 0) return;
  row.fetch_or(std::uint64_t{1} << (block & 63), std::memory_order_seq_cst);
  count.store(1, std::memory_order_release);
}

void PinTable::unpin(std::uint32_t block) const noexcept {
  const std::atomic_ref<std::uint32_t> count(counts_[block]);
  const std::atomic_ref<std::uint64_t> row(row_[block >> 6]);
  std::uint32_t seen = count.load(std::memory_order_relaxed);
  for (std::uint32_t round = 0;; ++round) {
    if (seen == busy) {
      relax(round);
      seen = count.load(std::memory_order_relaxed);
    } else if (count.compare_exchange_weak(seen, seen == 1 ? busy : seen - 1,
                                           std::memory_order_acq_rel, std::memory_order_relaxed)) {
      break;
    }
  }
  if (seen != 1) return;
  row.fetch_and(~(std::uint64_t{1} << (block & 63)), std::memory_order_release);
  count.store(0, std::memory_order_release);
}

}  // namespace esker::detail
