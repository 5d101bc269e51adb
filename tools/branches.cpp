#include "branches.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "describe.hpp"

namespace esker::cli {

namespace {

/// The branch that stands for a namespace. All paths of one namespace need none of their own: then
/// it is the store.
class Namespaces {
 public:
  Namespaces(std::span<const BlockInfo> blocks, std::vector<Branch>& branches)
      : branches_(branches) {
    std::map<std::string, bool> titles;
    for (const BlockInfo& block : blocks) {
      if (block.parent == BlockInfo::none) titles.emplace(title_of(block), true);
    }
    alone_ = titles.size() < 2 && titles.count("") == 1;
  }

  std::uint32_t of(const BlockInfo& first) {
    if (alone_) return 0;
    const auto [found, made] = known_.try_emplace(title_of(first), 0);
    if (made) {
      found->second = static_cast<std::uint32_t>(branches_.size());
      Branch& branch = branches_.emplace_back();
      branch.parent = 0;
      branch.title = found->first.empty() ? "no namespace" : found->first;
    }
    return found->second;
  }

 private:
  static std::string title_of(const BlockInfo& first) {
    return first.orphan ? "paths without their beginning" : namespace_text(first.name_space);
  }

  std::vector<Branch>& branches_;
  std::map<std::string, std::uint32_t> known_;
  bool alone_ = false;
};

void add_block(Branch& branch, const BlockInfo& block, std::uint64_t block_bytes) {
  if (branch.blocks == 0) {
    branch.first_token = block.first_token;
    branch.published_unix_ns = block.published_unix_ns;
  }
  branch.tokens += block.tokens;
  ++branch.blocks;
  branch.paths += block.children == 0 ? 1 : 0;
  branch.own_bytes += block_bytes;
  branch.last_used_unix_ns = std::max(branch.last_used_unix_ns, block.last_used_unix_ns);
  branch.path = block.path;
  branch.pins = std::max(branch.pins, block.pins);
}

}  // namespace

std::vector<Branch> branches_of(std::span<const BlockInfo> blocks, std::uint64_t block_bytes,
                                std::string store) {
  std::vector<Branch> branches(1);
  branches.front().title = std::move(store);
  Namespaces namespaces(blocks, branches);
  std::vector<std::uint32_t> branch_of(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const BlockInfo& block = blocks[i];
    const bool first = block.parent == BlockInfo::none || block.parent >= i;
    if (first || blocks[block.parent].children != 1) {
      const std::uint32_t parent = first ? namespaces.of(block) : branch_of[block.parent];
      branch_of[i] = static_cast<std::uint32_t>(branches.size());
      branches.emplace_back().parent = parent;
    } else {
      branch_of[i] = branch_of[block.parent];
    }
    add_block(branches[branch_of[i]], block, block_bytes);
  }
  for (std::size_t i = branches.size(); i-- > 0;) {
    Branch& branch = branches[i];
    branch.total_bytes += branch.own_bytes;
    if (i == 0) break;
    Branch& parent = branches[branch.parent];
    parent.total_bytes += branch.total_bytes;
    parent.paths += branch.paths;
    parent.last_used_unix_ns = std::max(parent.last_used_unix_ns, branch.last_used_unix_ns);
  }
  return branches;
}

}  // namespace esker::cli
