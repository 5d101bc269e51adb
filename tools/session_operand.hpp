#pragma once

#include <esker/session.hpp>
#include <esker/store.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store_operand.hpp"

namespace esker::cli {

// A session that is not there is `Errc::missing`, with the name that may have been meant.

/// What is known of one session, also of a damaged one.
[[nodiscard]] Result<SessionInfo> find_session(const Store& store, const std::string& name);

/// Opens a session of `store` to change it.
[[nodiscard]] Result<Session> resume_session(Store& store, const std::string& name);

/// The sessions of these names, each once.
[[nodiscard]] Result<std::vector<SessionInfo>> find_sessions(const Store& store,
                                                             std::span<const std::string> names);

/// The name in quotes, as messages show it.
[[nodiscard]] std::string quoted(std::string_view name);

}  // namespace esker::cli
