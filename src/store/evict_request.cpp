// Invariants
// 1. What a person asks to evict goes in the same order as what the allocator evicts.
#include <algorithm>

#include "base/clock.hpp"
#include "store/evict.hpp"
#include "store/house.hpp"
#include "store/kept.hpp"
#include "store/retire.hpp"

namespace esker::detail {

namespace {

Freed evict_first(Core& core, const std::vector<Victim>& victims, std::size_t count, bool dry_run) {
  Freed freed;
  for (std::size_t i = 0; i < count; ++i) {
    const Victim& victim = victims[i];
    if (dry_run || evict_one(core, victim)) ++freed.blocks;
  }
  freed.reusable_bytes = freed.blocks * core.superblock.geometry.block_bytes();
  if (dry_run) return freed;
  core.count(Counter::evicted_blocks, freed.blocks);
  sweep(core);
  return freed;
}

std::uint64_t ready_blocks(const Core& core) {
  std::uint64_t ready = 0;
  for (std::uint32_t block = 0; block < core.known_blocks(); ++block) {
    if (core.word(block, std::memory_order_relaxed).state == BlockState::ready) ++ready;
  }
  return ready;
}

}  // namespace

Freed evict_to(Core& core, std::uint64_t target_bytes, bool dry_run) {
  core.follow_growth();
  const std::uint64_t ready = ready_blocks(core);
  const std::uint64_t keep = target_bytes / core.superblock.geometry.block_bytes();
  if (ready <= keep) return {};
  const std::vector<Victim> all = victims(core);
  const std::size_t count = std::min<std::size_t>(all.size(), ready - keep);
  Freed freed = evict_first(core, all, count, dry_run);
  const std::uint64_t left = ready - keep - count;
  freed.kept_blocks = std::min(left, kept_blocks(core));
  freed.pinned_blocks = left - freed.kept_blocks;
  return freed;
}

Freed evict_unused_since(Core& core, std::uint64_t unix_ns, bool dry_run) {
  core.follow_growth();
  const std::uint32_t stamp = stamp_of_unix(unix_ns);
  const std::vector<Victim> all = victims(core);
  std::vector<Victim> old;
  for (const Victim& victim : all) {
    if (victim.touch.stamp <= stamp) old.push_back(victim);
  }
  return evict_first(core, old, old.size(), dry_run);
}

}  // namespace esker::detail
