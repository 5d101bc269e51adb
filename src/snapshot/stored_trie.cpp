// Invariants
// 1. A block is chosen only together with all blocks above it, up to a root.
// 2. Of several copies of a node, which publishers leave for a moment, one is chosen.
#include "snapshot/stored_trie.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/error.hpp"
#include "store/session_paths.hpp"

namespace esker::detail {

namespace {

constexpr std::uint32_t none = UINT32_MAX;

/// Same kind, namespace and label; where they hang was compared before.
bool same_label(Core& core, const ScannedBlock& a, const ScannedBlock& b) {
  if (a.key != b.key || a.tokens != b.tokens) return false;
  const Found x = pin_scanned(core, a);
  const Found y = pin_scanned(core, b);
  bool same = false;
  if (x && y) {
    const auto left = core.prover.label(*x.header);
    const auto right = core.prover.label(*y.header);
    same = x.header->namespace_bytes == y.header->namespace_bytes &&
           x.header->name_space == y.header->name_space &&
           std::equal(left.begin(), left.end(), right.begin(), right.end());
  }
  if (x) core.pins.unpin(a.block);
  if (y) core.pins.unpin(b.block);
  return same;
}

/// Which scanned blocks count, and where a copy is represented by another.
class Chooser {
 public:
  explicit Chooser(Core& core) : core_(core), scan_(scan_trie(core)) {
    same_as_.assign(scan_.size(), none);
    wanted_.assign(scan_.size(), false);
    std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash;
    for (std::uint32_t i = 0; i < scan_.size(); ++i) {
      if (!reachable(i)) continue;
      same_as_[i] = first_copy(by_hash, i);
      if (same_as_[i] == i) by_hash.emplace(scan_[i].chain_hash, i);
    }
  }

  void want_everything() { wanted_.assign(scan_.size(), true); }

  Result<void> want_path(std::uint64_t path) {
    for (std::uint32_t i = 0; i < scan_.size(); ++i) {
      if (scan_[i].chain_hash != path || same_as_[i] == none) continue;
      want_line(same_as_[i]);
      return {};
    }
    return fail(Errc::missing,
                core_.directory.path() + ": there is no path " + hex(path) + "; see `esker ls`");
  }

  void want_tokens(Tokens tokens, std::string_view name_space) {
    const PinnedPath path(core_, tokens, name_space);
    if (!path) return;
    if (by_block_.empty()) {
      for (std::uint32_t i = 0; i < scan_.size(); ++i) by_block_.emplace(scan_[i].block, i);
    }
    // What was published since the scan ends the line: it has to be without gaps.
    std::uint32_t last = none;
    for (const PinnedBlock& pinned : path->blocks) {
      const auto found = by_block_.find(pinned.block);
      if (found == by_block_.end()) break;
      const std::uint32_t at = found->second;
      if (scan_[at].generation != pinned.generation || same_as_[at] == none) break;
      last = same_as_[at];
    }
    want_line(last);
  }

  StoredTrie take() {
    StoredTrie trie;
    std::vector<std::uint32_t> places(scan_.size(), none);
    for (std::uint32_t i = 0; i < scan_.size(); ++i) {
      if (same_as_[i] != i || !wanted_[i]) continue;
      ScannedBlock block = scan_[i];
      if (block.parent_entry != none) block.parent_entry = places[same_as_[block.parent_entry]];
      places[i] = static_cast<std::uint32_t>(trie.blocks.size());
      trie.blocks.push_back(block);
    }
    return trie;
  }

 private:
  [[nodiscard]] bool reachable(std::uint32_t i) const {
    const ScannedBlock& block = scan_[i];
    if (block.parent.root()) return block.first_token == 0;
    if (block.parent_entry == none || same_as_[block.parent_entry] == none) return false;
    const ScannedBlock& parent = scan_[block.parent_entry];
    return !parent.key && !block.key && parent.tokens == core_.block_tokens() &&
           parent.first_token + parent.tokens == block.first_token;
  }

  [[nodiscard]] std::uint32_t above(std::uint32_t i) const {
    const std::uint32_t parent = scan_[i].parent_entry;
    return parent == none ? none : same_as_[parent];
  }

  [[nodiscard]] std::uint32_t first_copy(
      const std::unordered_multimap<std::uint64_t, std::uint32_t>& by_hash, std::uint32_t i) const {
    const auto [begin, end] = by_hash.equal_range(scan_[i].chain_hash);
    for (auto at = begin; at != end; ++at) {
      if (above(at->second) == above(i) && same_label(core_, scan_[at->second], scan_[i])) {
        return at->second;
      }
    }
    return i;
  }

  void want_line(std::uint32_t from) {
    for (std::uint32_t at = from; at != none && !wanted_[at]; at = above(at)) wanted_[at] = true;
  }

  Core& core_;
  std::vector<ScannedBlock> scan_;
  std::vector<std::uint32_t> same_as_;  ///< itself, the copy that stands for it, or none
  std::vector<bool> wanted_;
  std::unordered_map<std::uint32_t, std::uint32_t> by_block_;
};

}  // namespace

bool wants_everything(const ExportOptions& options) noexcept {
  return options.paths.empty() && options.sessions.empty() && options.prompts.empty();
}

Found pin_scanned(Core& core, const ScannedBlock& scanned) noexcept {
  return pin_node(core, scanned.block, scanned.generation, scanned.node);
}

Result<StoredTrie> choose_blocks(Core& core, const ExportOptions& options,
                                 const std::vector<SessionRecord>& sessions) {
  Chooser chooser(core);
  if (wants_everything(options)) {
    chooser.want_everything();
    return chooser.take();
  }
  for (const std::uint64_t path : options.paths) {
    if (auto ok = chooser.want_path(path); !ok) return failure_of(ok);
  }
  for (const SnapshotPrompt& prompt : options.prompts) {
    chooser.want_tokens(prompt.tokens, prompt.name_space);
  }
  for (const SessionRecord& session : sessions) {
    chooser.want_tokens(session.tokens, session.name_space);
  }
  return chooser.take();
}

}  // namespace esker::detail
