#include "support/model.hpp"

#include <algorithm>
#include <array>

namespace esker::test {

namespace {

std::uint32_t size_of(const TokenList& tokens) { return static_cast<std::uint32_t>(tokens.size()); }

bool starts_with(const TokenList& tokens, const TokenList& beginning) {
  return tokens.size() >= beginning.size() &&
         std::equal(beginning.begin(), beginning.end(), tokens.begin());
}

}  // namespace

void Model::add(Nodes& nodes, const TokenList& path, bool fresh) const {
  const std::uint32_t parent = (size_of(path) - 1) / block_tokens_ * block_tokens_;
  for (std::uint32_t shorter = parent + 1; shorter < path.size(); ++shorter) {
    nodes.erase(first(path, shorter));
  }
  if (fresh || nodes.count(path) == 0) nodes[path] = fresh;
}

void Model::published(const TokenList& tokens, const std::string& name_space,
                      std::uint32_t found_before) {
  Nodes& nodes = nodes_[name_space];
  const std::uint32_t whole = size_of(tokens) / block_tokens_ * block_tokens_;
  for (std::uint32_t end = block_tokens_; end <= whole; end += block_tokens_) {
    add(nodes, first(tokens, end), end > found_before);
  }
  if (whole < tokens.size() && found_before < tokens.size()) add(nodes, tokens, true);
}

std::uint32_t Model::promised(const TokenList& tokens, const std::string& name_space) const {
  const auto found = nodes_.find(name_space);
  if (found == nodes_.end()) return 0;
  std::uint32_t length = 0;
  while (length + block_tokens_ <= tokens.size() &&
         found->second.count(first(tokens, length + block_tokens_)) > 0) {
    length += block_tokens_;
  }
  return length + shared_part(found->second, tokens, length);
}

std::uint32_t Model::shared_part(const Nodes& nodes, const TokenList& tokens,
                                 std::uint32_t parent) const {
  const std::uint32_t rest = size_of(tokens) - parent;
  const std::array<std::uint32_t, 4> probes = {rest, block_tokens_ / 2, block_tokens_ / 4,
                                               block_tokens_ / 8};
  std::uint32_t best = 0;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const std::uint32_t length = probes[i];
    if (length <= best || length > rest || length >= block_tokens_) continue;
    const TokenList beginning = first(tokens, parent + length);
    for (auto node = nodes.lower_bound(beginning);
         node != nodes.end() && starts_with(node->first, beginning); ++node) {
      const bool sibling = node->first.size() <= parent + block_tokens_;
      const bool hinted = node->second && (i > 0 || node->first.size() == beginning.size());
      if (sibling && hinted) best = std::max(best, length);
    }
  }
  return best;
}

}  // namespace esker::test
