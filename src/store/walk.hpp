#pragma once

#include <cstdint>
#include <esker/geometry.hpp>
#include <functional>
#include <span>
#include <string_view>

#include "index/chain_hash.hpp"
#include "index/label.hpp"
#include "store/core.hpp"

namespace esker::detail {

/// A block that was found, pinned and proved.
struct Found {
  PinnedBlock pinned;
  std::uint32_t owner = 0;
  const BlockHeader* header = nullptr;
  explicit operator bool() const noexcept { return header != nullptr; }
};

/// The place in the trie where a path stands: the next label hangs under `parent`.
struct Position {
  NodeId parent;
  std::uint64_t hash = 0;  ///< chain hash up to here
  std::string_view name_space;
  std::uint32_t block_index = 0;
};

/// Pins a block if its word says READY of a generation that fits, and proves its header. A damaged
/// header condemns the block. Nothing stays pinned when the result is empty.
[[nodiscard]] Found pin_and_prove(Core& core, std::uint64_t hint) noexcept;

/// The same, if it is this node in this life.
[[nodiscard]] Found pin_node(Core& core, std::uint32_t block, std::uint32_t generation,
                             const NodeId& node) noexcept;

/// The block with exactly this label under `position`, pinned; `other_than` is passed over.
[[nodiscard]] Found find_label(Core& core, const Position& position, std::uint64_t hash,
                               std::span<const std::byte> label, BlockKind kind,
                               const PinnedBlock* other_than = nullptr) noexcept;

/// The block that shares most leading tokens with `rest` under `position`, pinned.
struct Partial {
  Found found;
  std::uint32_t common = 0;
};
[[nodiscard]] Partial find_partial(Core& core, const Position& position, Tokens rest) noexcept;

/// A walked path: all whole blocks, then perhaps a block that is shared in part.
struct Walk {
  Position position;  ///< after the last whole block
  Partial partial;
};

/// Walks from the root as far as `tokens` are stored, appending pinned blocks to `body`. The
/// partial block, if any, is pinned as well but not appended. False when memory ran out.
[[nodiscard]] bool walk(Core& core, Tokens tokens, std::string_view name_space, PrefixBody& body,
                        Walk& out) noexcept;

/// All that is stored of `tokens`, the partial block included, pinned in `body`. False when memory
/// ran out.
[[nodiscard]] bool pin_stored(Core& core, Tokens tokens, std::string_view name_space,
                              PrefixBody& body) noexcept;

/// Appends a pinned block to the body and counts `tokens` of it.
[[nodiscard]] bool append(Core& core, PrefixBody& body, const Found& found,
                          std::uint32_t tokens) noexcept;

/// Gives all pins of the body back.
void unpin_all(Core& core, PrefixBody& body) noexcept;

/// Marks the whole path as used now.
void touch_path(Core& core, const PrefixBody& body) noexcept;

}  // namespace esker::detail
