// Invariants
// 1. A node comes after its parent, and in the same span only right behind it.
// 2. Every node comes once, unless it or one above it was dropped before.
#include "archive/span_planner.hpp"

#include <algorithm>
#include <numeric>

namespace esker::detail {

namespace {

constexpr std::uint32_t none = UINT32_MAX;

/// Rows of each node and of all below it.
std::vector<std::uint64_t> weigh(const std::vector<PlannedNode>& nodes) {
  std::vector<std::uint64_t> weights(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    weights[i] += nodes[i].rows;
    if (nodes[i].parent != none) weights[nodes[i].parent] += weights[i];
  }
  return weights;
}

}  // namespace

SpanPlanner::SpanPlanner(const std::vector<PlannedNode>& nodes)
    : links_(nodes.size()),
      rows_(nodes.size()),
      end_tokens_(nodes.size()),
      dropped_(nodes.size(), false) {
  const std::vector<std::uint64_t> weights = weigh(nodes);
  std::vector<std::uint32_t> light_first(nodes.size());
  std::iota(light_first.begin(), light_first.end(), 0);
  std::stable_sort(light_first.begin(), light_first.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return weights[a] < weights[b]; });
  for (const std::uint32_t i : light_first) {
    rows_[i] = nodes[i].rows;
    end_tokens_[i] = nodes[i].end_token;
    if (nodes[i].parent == none) {
      heads_.push_back(i);
    } else {
      Links& parent = links_[nodes[i].parent];
      links_[i].next_sibling = parent.first_child;
      parent.first_child = i;
    }
  }
}

bool SpanPlanner::take_chain(std::uint32_t node, const Limits& limits,
                             std::vector<std::uint32_t>& span, std::vector<std::uint32_t>& later) {
  const bool alone = span.empty();
  std::uint32_t end_token = 0;
  while (node != none) {
    const bool fits = span_rows_ + rows_[node] <= limits.rows && span.size() < limits.nodes &&
                      (alone || path_tokens_ + end_tokens_[node] <= limits.path_tokens);
    if (!fits && !span.empty()) {
      later.push_back(node);
      return false;
    }
    span.push_back(node);
    span_rows_ += rows_[node];
    end_token = end_tokens_[node];
    std::uint32_t follower = none;
    for (std::uint32_t child = links_[node].first_child; child != none;
         child = links_[child].next_sibling) {
      if (dropped_[child]) continue;
      if (follower == none) {
        follower = child;
      } else {
        later.push_back(child);
      }
    }
    node = follower;
  }
  path_tokens_ += end_token;
  return true;
}

std::vector<std::uint32_t> SpanPlanner::next(const Limits& limits) {
  std::vector<std::uint32_t> span;
  std::vector<std::uint32_t> later;
  span_rows_ = 0;
  path_tokens_ = 0;
  for (bool room = true; room && !heads_.empty();) {
    const std::uint32_t head = heads_.back();
    heads_.pop_back();
    if (!dropped_[head]) room = take_chain(head, limits, span, later);
  }
  // What was cut goes on first: its path is then together in the file.
  heads_.insert(heads_.end(), later.begin(), later.end());
  return span;
}

std::uint64_t SpanPlanner::drop(std::uint32_t node) {
  std::uint64_t count = 0;
  std::vector<std::uint32_t> open{node};
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    if (dropped_[at]) continue;
    dropped_[at] = true;
    ++count;
    for (std::uint32_t child = links_[at].first_child; child != none;
         child = links_[child].next_sibling) {
      open.push_back(child);
    }
  }
  return count;
}

}  // namespace esker::detail
