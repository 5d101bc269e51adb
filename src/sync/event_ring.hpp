#pragma once

#include <cstdint>
#include <esker/stats.hpp>
#include <string_view>
#include <vector>

#include "sync/control.hpp"

namespace esker::detail {

/// Leaves a note for `Store::events`. Lock-free; two writers a whole ring apart may tear an entry,
/// which readers then skip. `note` is cut to 27 bytes and must never hold tokens.
void post_event(const Control& control, EventKind kind, std::uint32_t seat, std::uint32_t block,
                std::int32_t os_error, std::string_view note) noexcept;

[[nodiscard]] std::vector<Event> read_events(const Control& control, std::uint64_t since);

}  // namespace esker::detail
