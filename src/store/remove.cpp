// Invariants
// 1. Children are retired before their parents, so that no orphan is left behind at any moment.
// 2. What is removed is wiped by a reserver, the only party that may write to a block. What a
//    reader still pins is marked, and wiped by whoever reserves it or cleans up next.
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/error.hpp"
#include "store/allocate.hpp"
#include "store/cold_forget.hpp"
#include "store/house.hpp"
#include "store/retire.hpp"
#include "store/session_paths.hpp"
#include "store/trie_scan.hpp"

namespace esker::detail {

namespace {

/// Marks the named nodes, what hangs below them, and their ancestors up to the last fork.
Result<std::uint64_t> select(const std::vector<ScannedBlock>& blocks,
                             std::span<const std::uint64_t> paths, std::vector<bool>& doomed) {
  std::uint64_t named = 0;
  for (const std::uint64_t path : paths) {
    bool found = false;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].chain_hash != path) continue;
      doomed[i] = true;
      found = true;
    }
    if (!found) {
      return fail(Errc::invalid, "path " + hex(path) + ": there is none of this name in the store");
    }
    ++named;
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::uint32_t parent = blocks[i].parent_entry;
    if (parent != UINT32_MAX && doomed[parent]) doomed[i] = true;
  }
  return named;
}

void add_lonely_ancestors(const std::vector<ScannedBlock>& blocks, std::vector<bool>& doomed) {
  std::vector<std::uint32_t> left(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) left[i] = blocks[i].children;
  for (std::size_t i = blocks.size(); i-- > 0;) {
    const std::uint32_t parent = blocks[i].parent_entry;
    if (!doomed[i] || parent == UINT32_MAX) continue;
    if (--left[parent] == 0) doomed[parent] = true;
  }
}

bool retire_scanned(Core& core, const ScannedBlock& scanned) {
  for (int round = 0; round < 4; ++round) {
    const BlockWord word = core.word(scanned.block);
    if (!word.ready(scanned.generation)) return false;
    if (retire(core, scanned.block, word)) return true;
  }
  return false;
}

void mark(const Core& core, std::uint32_t block) {
  core.control.touch(block).fetch_or(TouchWord::wipe_bit, std::memory_order_relaxed);
}

/// A block that a reader holds stays in limbo; its mark may have been lost to a concurrent touch.
std::uint64_t mark_held(const Core& core, const std::vector<ScannedBlock>& removed) {
  std::uint64_t held = 0;
  for (const ScannedBlock& scanned : removed) {
    const BlockWord word = core.word(scanned.block);
    if (word.generation != scanned.generation || word.state != BlockState::retired) continue;
    mark(core, scanned.block);
    ++held;
  }
  return held;
}

enum class End : std::uint8_t {
  any,    ///< also a block that only begins with the last tokens
  exact,  ///< the last block must end where the sequence ends
};

/// Marks the scanned blocks that a stored sequence passes through.
void mark_path(Core& core, const std::unordered_map<std::uint32_t, std::size_t>& entries,
               const SessionRecord& record, End end, std::vector<bool>& marks) {
  const PinnedPath path(core, record.tokens, record.name_space);
  if (!path) return;
  for (std::size_t i = 0; i < path->blocks.size(); ++i) {
    const PinnedBlock& pinned = path->blocks[i];
    const auto* header = reinterpret_cast<const BlockHeader*>(core.segments.header(pinned.block));
    if (end == End::exact && header->tokens != path->tokens_in(i)) continue;
    const auto entry = entries.find(pinned.block);
    if (entry != entries.end()) marks[entry->second] = true;
  }
}

/// Marks the scanned blocks from the end of a path up to its root.
void mark_upwards(const std::vector<ScannedBlock>& blocks, std::uint64_t path,
                  std::vector<bool>& marks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].chain_hash != path) continue;
    for (auto at = static_cast<std::uint32_t>(i); at != UINT32_MAX; at = blocks[at].parent_entry) {
      marks[at] = true;
    }
  }
}

Result<Freed> remove_scanned(Core& core, const std::vector<ScannedBlock>& blocks,
                             const std::vector<bool>& doomed, bool dry_run) {
  const std::uint64_t block_bytes = core.superblock.geometry.block_bytes();
  Freed freed;
  std::vector<ScannedBlock> removed;
  for (std::size_t i = blocks.size(); i-- > 0;) {
    if (!doomed[i] || blocks[i].block == cold_only) continue;
    if (!dry_run) mark(core, blocks[i].block);
    if (!dry_run && !retire_scanned(core, blocks[i])) continue;
    removed.push_back(blocks[i]);
  }
  freed.blocks = removed.size();
  freed.reusable_bytes = freed.blocks * block_bytes;
  if (dry_run) {
    freed.disk_bytes = freed.reusable_bytes;
    return freed;
  }
  core.count(Counter::removed_blocks, removed.size());
  core.event(EventKind::removed, 0, 0, std::to_string(removed.size()) + " blocks");
  sweep(core);
  freed.pinned_blocks = mark_held(core, removed);
  freed.reusable_bytes = (freed.blocks - freed.pinned_blocks) * block_bytes;
  // Evicted and superseded copies of the same rows lie in FREE blocks, and a rebuild would find
  // them.
  auto wiped = wipe_free(core, Wipe::used);
  if (!wiped) return tl::make_unexpected(std::move(wiped).error());
  freed.disk_bytes = freed.reusable_bytes;
  return freed;
}

/// The same from the segments and from the cold files.
Result<Freed> remove_everywhere(Core& core, const HeldCold& cold,
                                const std::vector<ScannedBlock>& blocks,
                                const std::vector<bool>& doomed, bool dry_run) {
  auto freed = remove_scanned(core, blocks, doomed, dry_run);
  if (!freed) return freed;
  std::unordered_set<std::uint64_t> paths;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!doomed[i]) continue;
    paths.insert(blocks[i].chain_hash);
    if (blocks[i].block == cold_only && blocks[i].has_rows) ++freed->blocks;
  }
  if (dry_run) return freed;
  if (auto gone = forget_cold(core, cold, paths, *freed); !gone) return failure_of(gone);
  return freed;
}

std::vector<ScannedBlock> scan_everywhere(Core& core, const HeldCold& cold) {
  std::vector<ScannedBlock> blocks = scan_trie(core);
  add_cold_nodes(*cold.view, blocks);
  return blocks;
}

}  // namespace

Result<Freed> remove_paths(Core& core, std::span<const std::uint64_t> paths, bool dry_run) {
  auto cold = hold_cold(core, dry_run);
  if (!cold) return failure_of(cold);
  const std::vector<ScannedBlock> blocks = scan_everywhere(core, *cold);
  std::vector<bool> doomed(blocks.size());
  auto named = select(blocks, paths, doomed);
  if (!named) return tl::make_unexpected(std::move(named).error());
  add_lonely_ancestors(blocks, doomed);
  auto freed = remove_everywhere(core, *cold, blocks, doomed, dry_run);
  if (freed) freed->paths = *named;
  return freed;
}

Result<Freed> remove_sequences(Core& core, std::span<const SessionRecord> gone,
                               std::span<const SessionRecord> staying, bool dry_run) {
  auto cold = hold_cold(core, dry_run);
  if (!cold) return failure_of(cold);
  const std::vector<ScannedBlock> blocks = scan_everywhere(core, *cold);
  std::vector<bool> wanted(blocks.size());
  std::vector<bool> used(blocks.size());
  std::unordered_map<std::uint32_t, std::size_t> entries;
  for (std::size_t i = 0; i < blocks.size(); ++i) entries.emplace(blocks[i].block, i);
  for (const SessionRecord& record : gone) {
    mark_path(core, entries, record, End::exact, wanted);
    mark_cold_path(core, *cold->view, blocks, record, true, wanted);
    for (const std::uint64_t path : record.dropped_paths) mark_upwards(blocks, path, wanted);
  }
  for (const SessionRecord& record : staying) {
    mark_path(core, entries, record, End::any, used);
    mark_cold_path(core, *cold->view, blocks, record, false, used);
  }
  std::vector<bool> doomed(blocks.size());
  std::uint64_t shared = 0;
  std::vector<std::uint32_t> left(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) left[i] = blocks[i].children;
  for (std::size_t i = blocks.size(); i-- > 0;) {
    if (!wanted[i]) continue;
    if (used[i] || left[i] > 0) {
      ++shared;
      continue;
    }
    doomed[i] = true;
    if (blocks[i].parent_entry != UINT32_MAX) --left[blocks[i].parent_entry];
  }
  auto freed = remove_everywhere(core, *cold, blocks, doomed, dry_run);
  if (freed) {
    freed->paths = gone.size();
    freed->shared_blocks = shared;
  }
  return freed;
}

}  // namespace esker::detail
