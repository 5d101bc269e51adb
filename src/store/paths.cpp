// Invariants
// 1. A scan pins each block only while it copies the header: what it returns may be gone by then,
//    and whoever acts on it checks the generation again.
#include <algorithm>
#include <unordered_map>

#include "base/clock.hpp"
#include "store/observe.hpp"
#include "store/session_paths.hpp"
#include "store/trie_scan.hpp"
#include "store/walk.hpp"

namespace esker::detail {

namespace {

std::uint32_t pins_of(const Core& core, std::uint32_t block) {
  std::uint32_t pins = 0;
  for (std::uint32_t seat = 0; seat < core.control.seats_in_use(); ++seat) {
    const AtomicWord row(core.control.row(seat)[block >> 6]);
    pins += static_cast<std::uint32_t>(row.load(std::memory_order_relaxed) >> (block & 63) & 1);
  }
  return pins;
}

std::uint64_t last_used_of(const Core& core, std::uint32_t block) {
  const auto touch = TouchWord::unpack(core.control.touch(block).load(std::memory_order_relaxed));
  return unix_of_stamp(touch.stamp);
}

std::string namespace_of(const Core& core, std::uint32_t block) {
  const auto* header = reinterpret_cast<const BlockHeader*>(core.segments.header(block));
  return {header->name_space.data(),
          std::min<std::size_t>(header->namespace_bytes, max_namespace_bytes)};
}

/// Bytes from the leaf up to the last fork.
std::uint64_t own_blocks(const std::vector<ScannedBlock>& blocks, std::size_t leaf) {
  std::uint64_t own = 1;
  std::uint32_t at = blocks[leaf].parent_entry;
  while (at != UINT32_MAX && blocks[at].children == 1) {
    ++own;
    at = blocks[at].parent_entry;
  }
  return own;
}

PathInfo describe(const Core& core, const std::vector<ScannedBlock>& blocks, std::size_t leaf) {
  const ScannedBlock& scanned = blocks[leaf];
  PathInfo info;
  info.path = scanned.chain_hash;
  info.tokens = scanned.first_token + scanned.tokens;
  info.blocks = scanned.first_token / core.block_tokens() + 1;
  info.bytes = info.blocks * core.superblock.geometry.block_bytes();
  info.own_bytes = own_blocks(blocks, leaf) * core.superblock.geometry.block_bytes();
  info.published_unix_ns = scanned.published_unix_ns;
  info.last_used_unix_ns = last_used_of(core, scanned.block);
  info.pins = pins_of(core, scanned.block);
  info.key = scanned.key;
  info.name_space = namespace_of(core, scanned.block);
  return info;
}

/// Per scanned block the sessions whose stored part ends there.
std::unordered_map<std::uint32_t, std::vector<std::string>> session_ends(Core& core) {
  std::unordered_map<std::uint32_t, std::vector<std::string>> ends;
  for (SessionRecord& record : readable_sessions(core).records) {
    const PinnedPath path(core, record.tokens, record.name_space);
    if (path) ends[path->blocks.back().block].push_back(std::move(record.name));
  }
  return ends;
}

}  // namespace

std::vector<ScannedBlock> scan_trie(Core& core) {
  core.follow_growth();
  std::vector<ScannedBlock> blocks;
  for (std::uint32_t block = 0; block < core.known_blocks(); ++block) {
    const BlockWord word = core.word(block, std::memory_order_relaxed);
    if (word.state != BlockState::ready) continue;
    const Found found = pin_and_prove(core, Hint::pack(0, HintKind::whole, block, word.generation));
    if (!found) continue;
    const BlockHeader& header = *found.header;
    blocks.push_back({block, found.pinned.generation, header.chain_hash, header.node(),
                      header.parent(), UINT32_MAX, 0, header.first_token, header.tokens,
                      header.published_unix_ns,
                      header.kind == static_cast<std::uint8_t>(BlockKind::key)});
    core.pins.unpin(block);
  }
  std::sort(blocks.begin(), blocks.end(), [](const ScannedBlock& a, const ScannedBlock& b) {
    return std::tie(a.first_token, a.node) < std::tie(b.first_token, b.node);
  });
  std::unordered_map<NodeId, std::uint32_t, NodeHash> by_node;
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    by_node.emplace(blocks[i].node, i);
    if (blocks[i].parent.root()) continue;
    const auto parent = by_node.find(blocks[i].parent);
    if (parent == by_node.end()) continue;
    blocks[i].parent_entry = parent->second;
    ++blocks[parent->second].children;
  }
  return blocks;
}

std::vector<PathInfo> list_paths(Core& core) {
  const std::vector<ScannedBlock> blocks = scan_trie(core);
  const auto ends = session_ends(core);
  std::vector<PathInfo> paths;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool orphan = blocks[i].first_token != 0 && blocks[i].parent_entry == UINT32_MAX;
    if (blocks[i].children != 0 || orphan) continue;
    PathInfo& path = paths.emplace_back(describe(core, blocks, i));
    for (auto at = static_cast<std::uint32_t>(i); at != UINT32_MAX; at = blocks[at].parent_entry) {
      const auto found = ends.find(blocks[at].block);
      if (found == ends.end()) continue;
      path.sessions.insert(path.sessions.end(), found->second.begin(), found->second.end());
    }
    std::sort(path.sessions.begin(), path.sessions.end());
  }
  return paths;
}

std::vector<BlockInfo> list_blocks(Core& core) {
  std::vector<BlockInfo> list;
  for (const ScannedBlock& scanned : scan_trie(core)) {
    BlockInfo& info = list.emplace_back();
    info.parent = scanned.parent_entry;
    info.children = scanned.children;
    info.path = scanned.chain_hash;
    info.first_token = scanned.first_token;
    info.tokens = scanned.tokens;
    info.published_unix_ns = scanned.published_unix_ns;
    info.last_used_unix_ns = last_used_of(core, scanned.block);
    info.pins = pins_of(core, scanned.block);
    info.key = scanned.key;
    if (scanned.parent_entry != UINT32_MAX) continue;
    info.orphan = !scanned.parent.root();
    info.name_space = namespace_of(core, scanned.block);
  }
  return list;
}

PrefixBody* pin_path(Core& core, std::uint64_t path) {
  const std::vector<ScannedBlock> blocks = scan_trie(core);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].chain_hash != path) continue;
    std::vector<std::uint32_t> line;
    for (auto at = static_cast<std::uint32_t>(i); at != UINT32_MAX; at = blocks[at].parent_entry) {
      line.push_back(at);
    }
    if (!blocks[line.back()].parent.root()) continue;
    std::reverse(line.begin(), line.end());
    PrefixBody* body = core.bodies.take();
    if (body == nullptr) return nullptr;
    body->block_tokens = core.block_tokens();
    body->keys = blocks[i].key;
    for (const std::uint32_t at : line) {
      const Found found = pin_node(core, blocks[at].block, blocks[at].generation, blocks[at].node);
      if (!found || !append(core, *body, found, blocks[at].tokens)) {
        unpin_all(core, *body);
        core.bodies.give(body);
        return nullptr;
      }
    }
    touch_path(core, *body);
    return body;
  }
  return nullptr;
}

}  // namespace esker::detail
