// Invariants
// 1. Chains cover all nodes of a span, in order, none twice.
#include "archive/nodes.hpp"

namespace esker::detail {

std::vector<ArchiveChain> chains_of(const ArchiveSpan& span) {
  std::vector<ArchiveChain> chains;
  for (std::uint32_t i = 0; i < span.nodes.size(); ++i) {
    const std::uint32_t parent = span.nodes[i].parent;
    const bool goes_on = i > 0 && parent != no_node && parent == span.first_node + i - 1;
    if (goes_on) {
      chains.back().end = i + 1;
    } else {
      chains.push_back({i, i + 1});
    }
  }
  return chains;
}

}  // namespace esker::detail
