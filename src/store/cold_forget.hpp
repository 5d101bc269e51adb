#pragma once

#include <cstdint>
#include <esker/stats.hpp>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "catalog/session_files.hpp"
#include "store/cold_index.hpp"
#include "store/core.hpp"
#include "store/trie_scan.hpp"
#include "sync/lock.hpp"

namespace esker::detail {

/// The cold files for the time of a removal: nothing is frozen meanwhile, so that what is removed
/// from the segments cannot turn up in a file afterwards.
struct HeldCold {
  std::optional<LockFile> lock;  ///< COLD; none for a dry run, and in a store without cold blocks
  std::shared_ptr<const ColdView> view;
};
[[nodiscard]] Result<HeldCold> hold_cold(Core& core, bool dry_run);

/// Adds the nodes that are cold only to a scan, as entries without a block, below those that they
/// hang under. Nodes are the same when their path hashes are.
void add_cold_nodes(const ColdView& view, std::vector<ScannedBlock>& scan);

/// Marks entries without a block that a session passes through. `exact`: the last one must end
/// where the session ends; else it may go on.
void mark_cold_path(const Core& core, const ColdView& view, const std::vector<ScannedBlock>& scan,
                    const SessionRecord& record, bool exact, std::vector<bool>& marks);

/// Rewrites the cold files that hold these paths without them and what hangs below, and removes the
/// old ones: afterwards the bytes are gone. Adds to `freed`: disk space, and blocks that are only
/// cold.
[[nodiscard]] Result<void> forget_cold(Core& core, const HeldCold& cold,
                                       const std::unordered_set<std::uint64_t>& paths,
                                       Freed& freed);

}  // namespace esker::detail
