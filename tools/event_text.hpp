#pragma once

#include <esker/stats.hpp>
#include <string>

#include "output.hpp"

namespace esker::cli {

// What several commands show of an event.

/// "block_bad  pid 12  seat 3  block 7  what was found", without the time.
[[nodiscard]] std::string event_text(const Event& event);

[[nodiscard]] Object event_value(const Event& event);

}  // namespace esker::cli
