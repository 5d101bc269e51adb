// Invariants
// 1. Headers on disk may be those of evicted blocks, duplicates and orphans: a block is kept only
//    if its parent is kept, is whole, and ends where the block begins (which excludes cycles); of
//    equal nodes one stays (see put_in_order). Everything else is FREE.
// 2. A rebuilt block is suspect: its check is 0, so its payload is verified before it is served
//    even under Verify::never. Its bytes may be half overwritten.
// 3. A parent is never older than its children.
#include "store/rebuild.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "store/core.hpp"
#include "store/kept.hpp"
#include "store/retire.hpp"

namespace esker::detail {

namespace {

struct Entry {
  NodeId node;
  NodeId parent;
  std::uint64_t chain_hash = 0;
  std::uint64_t published_unix_ns = 0;
  std::uint32_t block = 0;
  std::uint32_t generation = 0;
  std::uint32_t first_token = 0;
  std::uint32_t tokens = 0;
  std::uint32_t parent_entry = UINT32_MAX;
  std::uint32_t stamp = 0;
  bool kept = false;
  bool key = false;
  bool has_children = false;
};

const BlockHeader& header_at(const Core& core, std::uint32_t block) {
  return *reinterpret_cast<const BlockHeader*>(core.segments.header(block));
}

std::vector<Entry> scan(const Core& core) {
  std::vector<Entry> entries;
  for (std::uint32_t block = 0; block < core.known_blocks(); ++block) {
    const std::byte* bytes = core.segments.header(block);
    if (bytes == nullptr) continue;
    const BlockHeader& header = *reinterpret_cast<const BlockHeader*>(bytes);
    if (header.magic != block_magic || !core.prover.valid(block, bytes)) continue;
    Entry entry;
    entry.node = header.node();
    entry.parent = header.parent();
    entry.chain_hash = header.chain_hash;
    entry.published_unix_ns = header.published_unix_ns;
    entry.block = block;
    entry.generation = header.generation;
    entry.first_token = header.first_token;
    entry.tokens = header.tokens;
    entry.key = header.kind == static_cast<std::uint8_t>(BlockKind::key);
    entries.push_back(entry);
  }
  return entries;
}

/// Parents before children; of equal nodes the one to keep comes first. Everybody publishes under
/// the surviving copy, so the one that others name as their parent is it; an evicted copy that was
/// published again is older than its successor.
void put_in_order(std::vector<Entry>& entries) {
  std::unordered_set<NodeId, NodeHash> parents;
  for (const Entry& entry : entries) parents.insert(entry.parent);
  for (Entry& entry : entries) entry.has_children = parents.contains(entry.node);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tuple(a.first_token, !a.has_children, UINT64_MAX - a.published_unix_ns, a.node) <
           std::tuple(b.first_token, !b.has_children, UINT64_MAX - b.published_unix_ns, b.node);
  });
}

/// Same parent, kind, namespace and label: the same node.
bool same_node(const Core& core, const Entry& a, const Entry& b) {
  const BlockHeader& x = header_at(core, a.block);
  const BlockHeader& y = header_at(core, b.block);
  if (a.parent != b.parent || x.kind != y.kind || x.label_bytes != y.label_bytes) return false;
  if (x.namespace_bytes != y.namespace_bytes || x.name_space != y.name_space) return false;
  return std::memcmp(core.prover.label(x).data(), core.prover.label(y).data(), x.label_bytes) == 0;
}

void choose(const Core& core, std::vector<Entry>& entries) {
  std::unordered_map<NodeId, std::uint32_t, NodeHash> kept_nodes;
  std::unordered_multimap<std::uint64_t, std::uint32_t> kept_hashes;
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    Entry& entry = entries[i];
    if (!entry.parent.root()) {
      const auto parent = kept_nodes.find(entry.parent);
      if (parent == kept_nodes.end()) continue;
      const Entry& above = entries[parent->second];
      if (above.key || above.tokens != core.block_tokens() ||
          above.first_token + above.tokens != entry.first_token) {
        continue;
      }
      entry.parent_entry = parent->second;
    }
    const auto [first, last] = kept_hashes.equal_range(entry.chain_hash);
    const bool duplicate = std::any_of(first, last, [&](const auto& other) {
      return same_node(core, entries[other.second], entry);
    });
    if (duplicate || !kept_nodes.try_emplace(entry.node, i).second) continue;
    kept_hashes.emplace(entry.chain_hash, i);
    entry.kept = true;
  }
}

void date(std::vector<Entry>& entries) {
  const std::uint32_t now = stamp_now();
  for (Entry& entry : entries) {
    entry.stamp = std::min(now, stamp_of_unix(entry.published_unix_ns));
  }
  // Children sort behind their parents: going backwards, a parent has seen all of its children.
  for (std::size_t i = entries.size(); i-- > 0;) {
    const Entry& entry = entries[i];
    if (!entry.kept || entry.parent_entry == UINT32_MAX) continue;
    Entry& parent = entries[entry.parent_entry];
    parent.stamp = std::max(parent.stamp, entry.stamp);
  }
}

void install(Core& core, const Entry& entry) {
  const BlockState state = entry.kept ? BlockState::ready : BlockState::free;
  const BlockWord word{entry.generation, state, 0};
  core.control.word(entry.block).store(word.pack(), std::memory_order_relaxed);
  if (!entry.kept) return;
  const TouchWord touch{entry.stamp, entry.first_token / core.block_tokens(), false, false, 0};
  core.control.touch(entry.block).store(touch.pack(), std::memory_order_relaxed);
  insert_hints(core.control, hints_of_block(core, header_at(core, entry.block)), entry.block,
               entry.generation);
}

}  // namespace

Result<void> rebuild(Core& core) {
  try {
    std::vector<Entry> entries = scan(core);
    put_in_order(entries);
    choose(core, entries);
    date(entries);
    for (const Entry& entry : entries) install(core, entry);
    mark_kept(core);
  } catch (const std::bad_alloc&) {
    return fail(Errc::no_memory,
                core.directory.path() + ": not enough memory to read the block headers again");
  }
  core.control.segment_count().store(core.segments.count(), std::memory_order_release);
  return {};
}

}  // namespace esker::detail
