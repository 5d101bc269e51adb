#pragma once

#include "catalog/session_files.hpp"

namespace esker::detail {

/// The directory `sessions/` and what its files must be like, as the functions behind SessionFiles
/// pass it on.
struct SessionArea {
  const Directory& directory;
  const SessionFiles::Place& place;
};

/// `Errc::invalid` for what no session file can hold.
[[nodiscard]] Result<void> check_record(const SessionRecord& record);

}  // namespace esker::detail
