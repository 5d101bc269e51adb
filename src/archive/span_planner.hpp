#pragma once

#include <cstdint>
#include <vector>

namespace esker::detail {

/// A node of a trie that is to be written; only its place and its size matter here.
struct PlannedNode {
  std::uint32_t parent = UINT32_MAX;  ///< index of a node before it; UINT32_MAX: a root
  std::uint32_t rows = 0;
  std::uint32_t end_token = 0;  ///< length of the path that ends here
};

/// Cuts a trie into spans as the format wants them: each is a row of chains, and no chain hangs
/// under another one of its span. Heavy chains come first, so that spans are well filled.
class SpanPlanner {
 public:
  struct Limits {
    std::uint32_t rows = 0;
    std::uint32_t nodes = 0;
    std::uint64_t path_tokens = UINT64_MAX;  ///< of all chains, each from its root; one may exceed
  };

  explicit SpanPlanner(const std::vector<PlannedNode>& nodes);

  /// Indices of the nodes of the next span, in order; empty when all have been.
  [[nodiscard]] std::vector<std::uint32_t> next(const Limits& limits);
  /// A node cannot be written: it and what hangs below it will not come any more. Returns how many
  /// nodes that are, those left out before not counted again.
  std::uint64_t drop(std::uint32_t node);
  [[nodiscard]] bool dropped(std::uint32_t node) const noexcept { return dropped_[node]; }

 private:
  struct Links {
    std::uint32_t first_child = UINT32_MAX;  ///< the one with most rows below it
    std::uint32_t next_sibling = UINT32_MAX;
  };
  /// Follows a chain from `node` as far as there is room; what hangs below it begins chains later.
  /// False when the span is full.
  bool take_chain(std::uint32_t node, const Limits& limits, std::vector<std::uint32_t>& span,
                  std::vector<std::uint32_t>& later);

  std::vector<Links> links_;
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> end_tokens_;
  std::vector<bool> dropped_;
  std::vector<std::uint32_t> heads_;  ///< chains that may begin in the next span; the last first
  std::uint64_t span_rows_ = 0;
  std::uint64_t path_tokens_ = 0;  ///< of the chains of this span that have ended
};

}  // namespace esker::detail
