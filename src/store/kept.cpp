// Invariants
// 1. Only blocks that the caller pins are marked, so a mark never lands on a later life of a block;
//    publishing writes the touch word anew and thereby clears the mark of an earlier one.
// 2. The marks follow the session files; they are advice to the evictor and nothing else.
#include "store/kept.hpp"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "base/clock.hpp"
#include "store/session_paths.hpp"
#include "store/walk.hpp"

namespace esker::detail {

namespace {

void set_kept(const Core& core, std::uint32_t block) noexcept {
  core.control.touch(block).fetch_or(TouchWord::kept_bit, std::memory_order_relaxed);
}

}  // namespace

bool is_kept(const Core& core, std::uint32_t block) noexcept {
  return (core.control.touch(block).load(std::memory_order_relaxed) & TouchWord::kept_bit) != 0;
}

std::uint64_t kept_blocks(const Core& core) noexcept {
  std::uint64_t kept = 0;
  for (std::uint32_t block = 0; block < core.known_blocks(); ++block) {
    if (is_kept(core, block) &&
        core.word(block, std::memory_order_relaxed).state == BlockState::ready) {
      ++kept;
    }
  }
  return kept;
}

std::uint64_t keep_limit(const Core& core, std::uint64_t wanted) noexcept {
  return wanted != 0 ? wanted : core.superblock.capacity_bytes / 2;
}

std::uint64_t not_kept(const Core& core, const PrefixBody& path) noexcept {
  std::uint64_t missing = 0;
  for (const PinnedBlock& pinned : path.blocks) {
    if (!is_kept(core, pinned.block)) ++missing;
  }
  return missing;
}

void keep_path(Core& core, const PrefixBody& path, std::uint64_t max_bytes) noexcept {
  if (not_kept(core, path) == 0) return;
  const std::uint64_t limit = keep_limit(core, max_bytes) / core.superblock.geometry.block_bytes();
  std::uint64_t kept = kept_blocks(core);
  for (const PinnedBlock& pinned : path.blocks) {
    if (is_kept(core, pinned.block)) continue;
    if (kept >= limit) return;
    set_kept(core, pinned.block);
    ++kept;
  }
}

std::uint32_t kept_tokens(const Core& core, const PrefixBody& path) noexcept {
  std::uint32_t tokens = 0;
  for (std::size_t i = 0; i < path.blocks.size() && is_kept(core, path.blocks[i].block); ++i) {
    tokens += path.tokens_in(i);
  }
  return tokens;
}

bool mark_kept(Core& core) {
  auto [records, complete] = readable_sessions(core, true);
  const std::uint64_t now = unix_ns();
  std::erase_if(records,
                [&](const SessionRecord& record) { return !record.kept || record.expired(now); });
  std::stable_sort(
      records.begin(), records.end(),
      [](const SessionRecord& a, const SessionRecord& b) { return a.priority > b.priority; });
  // Each was granted when all together were within its limit: within the largest they all are.
  std::uint64_t limit = 0;
  for (const SessionRecord& record : records) {
    limit = std::max(limit, keep_limit(core, record.keep_max_bytes));
  }
  const std::uint64_t block_bytes = core.superblock.geometry.block_bytes();
  std::unordered_set<std::uint32_t> kept;
  for (const SessionRecord& record : records) {
    const PinnedPath path(core, record.tokens, record.name_space);
    complete = complete && path.complete();
    if (!path) continue;
    for (const PinnedBlock& pinned : path->blocks) {
      if (kept.contains(pinned.block)) continue;
      if ((kept.size() + 1) * block_bytes > limit) break;
      set_kept(core, pinned.block);
      kept.insert(pinned.block);
    }
  }
  // Last, so that no block that stays kept is without its mark in between; and not at all when
  // there may be sessions that we do not know of.
  for (std::uint32_t block = 0; complete && block < core.known_blocks(); ++block) {
    if (is_kept(core, block) && !kept.contains(block)) {
      core.control.touch(block).fetch_and(~TouchWord::kept_bit, std::memory_order_relaxed);
    }
  }
  return complete;
}

}  // namespace esker::detail
