#include "archive/span_planner.hpp"

#include <random>

#include "catch.hpp"

using namespace esker::detail;

namespace {

std::vector<PlannedNode> random_trie(std::mt19937_64& random, std::uint32_t nodes) {
  std::vector<PlannedNode> all;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    // Mostly long chains, some forks and roots.
    const std::uint64_t dice = random() % 10;
    PlannedNode node{UINT32_MAX, static_cast<std::uint32_t>(1 + random() % 16), 0};
    if (i > 0 && dice > 0) {
      node.parent = static_cast<std::uint32_t>(dice > 2 ? i - 1 : random() % i);
      node.end_token = all[node.parent].end_token;
    }
    node.end_token += node.rows;
    all.push_back(node);
  }
  return all;
}

/// Takes all spans and checks each against the rules of the format; how many nodes there were.
std::uint32_t take_all(SpanPlanner& planner, const std::vector<PlannedNode>& trie,
                       const SpanPlanner::Limits& limits) {
  std::vector<std::uint32_t> span_of(trie.size(), UINT32_MAX);
  std::uint32_t taken = 0;
  std::uint32_t number = 0;
  for (auto span = planner.next(limits); !span.empty(); span = planner.next(limits), ++number) {
    std::uint32_t rows = 0;
    std::uint64_t spelled = 0;
    std::uint32_t chains = 0;
    for (std::size_t i = 0; i < span.size(); ++i) {
      const std::uint32_t node = span[i];
      REQUIRE(span_of[node] == UINT32_MAX);
      span_of[node] = number;
      rows += trie[node].rows;
      const std::uint32_t parent = trie[node].parent;
      const bool goes_on = parent != UINT32_MAX && span_of[parent] == number;
      if (goes_on) REQUIRE(span[i - 1] == parent);
      if (parent != UINT32_MAX) REQUIRE(span_of[parent] <= number);
      chains += goes_on ? 0 : 1;
      spelled += goes_on ? trie[node].rows : trie[node].end_token;
    }
    REQUIRE((chains == 1 || spelled <= limits.path_tokens));
    REQUIRE((rows <= limits.rows || span.size() == 1));
    REQUIRE(span.size() <= limits.nodes);
    taken += static_cast<std::uint32_t>(span.size());
  }
  return taken;
}

}  // namespace

TEST_CASE("spans keep the rules of the format and miss no node, whatever the trie looks like",
          "[snapshot]") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    const auto trie = random_trie(random, static_cast<std::uint32_t>(1 + random() % 400));
    SpanPlanner planner(trie);
    const SpanPlanner::Limits limits{static_cast<std::uint32_t>(1 + random() % 300),
                                     static_cast<std::uint32_t>(1 + random() % 50),
                                     1 + random() % 1'000};
    CAPTURE(round, limits.rows, limits.nodes);
    REQUIRE(take_all(planner, trie, limits) == trie.size());
  }
}

TEST_CASE("what hangs below a dropped node does not come any more, and is counted once",
          "[snapshot]") {
  std::mt19937_64 random(6);
  for (int round = 0; round < 100; ++round) {
    const auto trie = random_trie(random, 200);
    SpanPlanner planner(trie);
    std::vector<bool> gone(trie.size(), false);
    std::uint64_t dropped = 0;
    for (int i = 0; i < 5; ++i) {
      const auto node = static_cast<std::uint32_t>(random() % trie.size());
      dropped += planner.drop(node);
      gone[node] = true;
    }
    std::uint64_t expected = 0;
    for (std::uint32_t i = 0; i < trie.size(); ++i) {
      if (trie[i].parent != UINT32_MAX && gone[trie[i].parent]) gone[i] = true;
      REQUIRE(planner.dropped(i) == gone[i]);
      expected += gone[i] ? 1 : 0;
    }
    REQUIRE(dropped == expected);
    REQUIRE(take_all(planner, trie, {50, 20, 500}) == trie.size() - expected);
  }
}

TEST_CASE("a trunk with short branches fills its spans", "[snapshot]") {
  std::vector<PlannedNode> trie;
  for (std::uint32_t i = 0; i < 100; ++i) trie.push_back({i == 0 ? UINT32_MAX : i - 1, 1, 0});
  for (std::uint32_t i = 0; i < 100; ++i) trie.push_back({i, 1, 0});
  SpanPlanner planner(trie);
  CHECK(planner.next({100, 1000, 1000}).size() == 100);
  CHECK(planner.next({100, 1000, 1000}).size() == 100);
  CHECK(planner.next({100, 1000, 1000}).empty());
}
