#pragma once

#include <cstdint>
#include <esker/snapshot_info.hpp>
#include <vector>

#include "catalog/session_files.hpp"
#include "store/core.hpp"
#include "store/trie_scan.hpp"
#include "store/walk.hpp"

namespace esker::detail {

/// The blocks of a store that an export wants, parents first. Nothing is pinned: each block is
/// looked for again, by its generation and node id, when it is its turn.
struct StoredTrie {
  std::vector<ScannedBlock> blocks;  ///< `parent_entry` is an index of this list
};

/// All blocks that can be reached from a root, each node once; or those that `options` names, and
/// what leads to them. `sessions` are those whose names `options` lists.
[[nodiscard]] Result<StoredTrie> choose_blocks(Core& core, const ExportOptions& options,
                                               const std::vector<SessionRecord>& sessions);

/// The block again, pinned, if it still is the one that was scanned.
[[nodiscard]] Found pin_scanned(Core& core, const ScannedBlock& scanned) noexcept;

/// True when nothing in particular is named.
[[nodiscard]] bool wants_everything(const ExportOptions& options) noexcept;

}  // namespace esker::detail
