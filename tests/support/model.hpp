#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "support/rows.hpp"

namespace esker::test {

/// What a quiet store has promised to find: the reference that the real one is measured by. Nodes
/// are known as the tokens of their path, and the rule for prompts that part inside a block: the
/// store finds at least the largest of (what remains, B/2, B/4, B/8) that a stored block shares.
class Model {
 public:
  explicit Model(std::uint32_t block_tokens) : block_tokens_(block_tokens) {}

  /// All of `tokens` was published; `found_before` of them were stored already.
  void published(const TokenList& tokens, const std::string& name_space,
                 std::uint32_t found_before);
  /// Blocks went away: nothing is promised any more.
  void forget() { nodes_.clear(); }
  /// The shortest hit that keeps the promise.
  [[nodiscard]] std::uint32_t promised(const TokenList& tokens,
                                       const std::string& name_space) const;

 private:
  /// By path. True: its beginnings are findable too. A block that was there before the last
  /// `forget` may have left that to two others, which are gone since.
  using Nodes = std::map<TokenList, bool>;

  void add(Nodes& nodes, const TokenList& path, bool fresh) const;
  [[nodiscard]] std::uint32_t shared_part(const Nodes& nodes, const TokenList& tokens,
                                          std::uint32_t parent) const;

  std::uint32_t block_tokens_;
  std::map<std::string, Nodes> nodes_;
};

}  // namespace esker::test
