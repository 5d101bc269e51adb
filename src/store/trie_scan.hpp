#pragma once

#include <cstdint>
#include <vector>

#include "store/core.hpp"

namespace esker::detail {

/// A READY block as a full scan saw it, with its place in the trie. Advice: nothing is pinned.
struct ScannedBlock {
  std::uint32_t block = 0;
  std::uint32_t generation = 0;
  std::uint64_t chain_hash = 0;
  NodeId node;
  NodeId parent;
  std::uint32_t parent_entry = UINT32_MAX;  ///< index of the parent in the scan, if it is there
  std::uint32_t children = 0;
  std::uint32_t first_token = 0;
  std::uint32_t tokens = 0;
  std::uint64_t published_unix_ns = 0;
  bool key = false;
  bool has_rows = true;  ///< false: only spells the path of others, in a cold file
};

/// `ScannedBlock::block` of a node that is in cold files only; see add_cold_nodes.
inline constexpr std::uint32_t cold_only = UINT32_MAX;

/// Reads every header. Blocks are ordered so that a parent comes before its children.
[[nodiscard]] std::vector<ScannedBlock> scan_trie(Core& core);

}  // namespace esker::detail
