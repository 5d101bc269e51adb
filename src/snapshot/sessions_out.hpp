#pragma once

#include <esker/snapshot_info.hpp>
#include <string>
#include <vector>

#include "archive/nodes.hpp"
#include "catalog/session_files.hpp"
#include "store/core.hpp"

namespace esker::detail {

/// Sessions that an export takes along.
struct ChosenSessions {
  std::vector<SessionRecord> records;
  std::uint64_t damaged = 0;
};

/// Those that `options` names, or all when nothing is named. What is expired or damaged is left
/// out of all, and is an error for one that is named.
[[nodiscard]] Result<ChosenSessions> choose_sessions(const Core& core,
                                                     const ExportOptions& options);

[[nodiscard]] ArchiveSession archived_session(const SessionRecord& record);

/// The engine states that still belong to the session's tokens. `damaged` tells whether there were
/// others. `Errc::missing` when the session was removed meanwhile.
[[nodiscard]] Result<std::vector<ArchiveState>> states_of(const Core& core,
                                                          const SessionRecord& record,
                                                          bool& damaged);

}  // namespace esker::detail
