#pragma once

#include <cstdint>

#include "store/core.hpp"

namespace esker::detail {

/// Cleans up after the last owner of the seat that this handle has just claimed, before it goes
/// LIVE.
void reap_predecessor(Core& core) noexcept;

/// Reaps every seat whose owner is dead. Returns how many there were.
std::uint32_t reap_dead(Core& core) noexcept;

/// Reaps dead seats that pin one of the `wanted` blocks at a line of 64. Returns how many.
std::uint32_t reap_pinners(Core& core, std::uint32_t line, std::uint64_t wanted) noexcept;

/// Gives back everything this handle still holds and frees its seat.
void leave_seat(Core& core) noexcept;

}  // namespace esker::detail
