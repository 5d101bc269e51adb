#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/result.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "archive/nodes.hpp"

namespace esker::detail {

/// The nodes of a snapshot by number, children and paths. Takes only what the format allows, so
/// whoever walks it meets no cycle, no child of a key and no sibling twice.
class NodeTable {
 public:
  struct Node {
    std::uint32_t parent = no_node;
    std::uint32_t name_space = 0;
    std::uint32_t first_token = 0;
    std::uint32_t tokens = 0;
    std::uint64_t path_hash = 0;
    std::uint64_t published_unix_ns = 0;
    std::uint64_t used_unix_ns = 0;
    std::uint32_t first_child = no_node;   ///< the one that was added last
    std::uint32_t next_sibling = no_node;  ///< was added before it; under a root too
    BlockKind kind = BlockKind::tokens;
    bool has_rows = true;

    [[nodiscard]] std::uint32_t end_token() const noexcept { return first_token + tokens; }
  };

  /// Nodes that spell a prompt.
  struct Match {
    std::vector<std::uint32_t> nodes;  ///< from the root; all but the last match whole
    std::uint32_t tokens = 0;          ///< of the prompt
  };

  NodeTable() = default;
  NodeTable(std::uint32_t block_tokens, std::uint32_t namespaces);

  /// Takes the nodes of the next span, or none of them. `code` and `where` are for messages.
  [[nodiscard]] Result<void> add(const ArchiveSpan& span, Errc code, std::string_view where);
  /// Forgets the nodes from this number on.
  void drop_from(std::uint32_t node) noexcept;

  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(nodes_.size());
  }
  [[nodiscard]] const Node& at(std::uint32_t node) const noexcept { return nodes_[node]; }
  [[nodiscard]] std::span<const std::byte> label(std::uint32_t node) const noexcept;

  /// Below a node, or with `parent` no_node below the root of the namespace.
  [[nodiscard]] std::optional<std::uint32_t> child(std::uint32_t parent, std::uint32_t name_space,
                                                   BlockKind kind,
                                                   std::span<const std::byte> label) const noexcept;
  [[nodiscard]] std::uint32_t first_child(std::uint32_t parent,
                                          std::uint32_t name_space) const noexcept;
  /// From the root to `node`.
  [[nodiscard]] std::vector<std::uint32_t> path_to(std::uint32_t node) const;
  /// All tokens up to the end of `node`; none for a key.
  [[nodiscard]] std::vector<std::int32_t> tokens_of(std::uint32_t node) const;
  /// The longest stored beginning of a prompt, exact to the token.
  [[nodiscard]] Match match(Tokens prompt, std::uint32_t name_space) const;
  /// The same in all nodes, also those that only spell a path.
  [[nodiscard]] Match match_spelled(Tokens prompt, std::uint32_t name_space) const;

 private:
  [[nodiscard]] Result<void> add_one(const ArchiveNode& node, std::uint32_t number,
                                     std::uint32_t span_first, Errc code, std::string_view where);
  [[nodiscard]] std::uint64_t key_of(std::uint32_t parent, std::uint32_t name_space, BlockKind kind,
                                     std::span<const std::byte> label) const noexcept;
  [[nodiscard]] Match match_in(Tokens prompt, std::uint32_t name_space, bool only_rows) const;
  void enter(std::uint32_t node) noexcept;
  void make_room(std::size_t nodes, std::size_t label_bytes);

  std::uint32_t block_tokens_ = 0;
  std::uint64_t seed_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::uint64_t> keys_;  ///< per node: hash of parent, kind and label
  std::vector<std::uint64_t> label_ends_;
  std::vector<std::byte> labels_;
  std::vector<std::uint32_t> roots_;  ///< per namespace: the first child
  std::vector<std::uint32_t> slots_;  ///< open addressing by key; no_node is free
};

}  // namespace esker::detail
