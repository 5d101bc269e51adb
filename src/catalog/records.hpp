#pragma once

#include "catalog/area.hpp"
#include "format/session_file.hpp"

namespace esker::detail {

/// What of a record stands in the session file itself, without tokens and suffixes.
[[nodiscard]] SessionContent content_of(const SessionRecord& record);

/// `Errc::invalid` when `sessions/` is not open.
[[nodiscard]] Result<void> require_writable(const SessionArea& area);

}  // namespace esker::detail
