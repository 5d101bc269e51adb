#pragma once

#include <cstdint>
#include <esker/stats.hpp>
#include <string>
#include <vector>

#include "archive/writer.hpp"
#include "store/cold_files.hpp"
#include "store/core.hpp"

namespace esker::detail {

/// A node that is to stand in a new cold file.
struct DraftNode {
  ArchiveNode
      node;  ///< `parent` is an index into the draft, lower than its own; has_rows is wanted
  std::uint32_t block = 0;
  std::uint32_t generation = 0;
  NodeId id;  ///< of the block that has the rows
};

struct ColdDraft {
  std::vector<std::string> namespaces;
  std::vector<DraftNode> nodes;
};

struct WrittenCold {
  std::string name;
  std::vector<std::uint32_t> frozen;  ///< indices of draft nodes whose rows are in the file
  std::uint64_t raw_bytes = 0;
  std::uint64_t file_bytes = 0;
};

/// Writes a cold file: whole, synced and named when this returns. Rows are pinned only while their
/// span is read, and checked; blocks that have gone or are damaged are left out. No file at all,
/// and an empty `frozen`, when none is left. For the holder of COLD.
[[nodiscard]] Result<WrittenCold> write_cold(Core& core, const Directory& cold, ColdRoom& room,
                                             const ColdDraft& draft, const FreezeOptions& options);

}  // namespace esker::detail
