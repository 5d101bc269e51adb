#pragma once

#include <esker/geometry.hpp>
#include <esker/session_info.hpp>
#include <span>
#include <string>

#include "output.hpp"

namespace esker::cli {

// What several commands show of a session, so that all of them show it alike.

/// Bytes of the rows that can be reused, whoever else shares them.
[[nodiscard]] std::uint64_t reusable_bytes(const SessionInfo& session, const Geometry& geometry);

/// "1 993 of 2 003 tokens are reusable (99.5 %)".
[[nodiscard]] std::string reusable_line(const SessionInfo& session);

[[nodiscard]] Table session_table(std::span<const SessionInfo> sessions, const Geometry& geometry,
                                  const Output& out);

/// All that is known of a session. What a damaged one does not tell is null.
[[nodiscard]] Object session_value(const SessionInfo& session, const Geometry& geometry);

}  // namespace esker::cli
