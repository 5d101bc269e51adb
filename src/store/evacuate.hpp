#pragma once

#include <cstdint>
#include <esker/result.hpp>
#include <vector>

#include "store/core.hpp"

namespace esker::detail {

/// Which blocks leave the segments from `keep_segments` on, and where they go. Whoever makes and
/// carries out such a plan is alone in the store: INIT is held, and no seat but its own.
struct Evacuation {
  struct Move {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
  };
  std::uint32_t keep_segments = 0;
  std::vector<Move> moves;
  std::uint64_t dropped_blocks = 0;
  std::uint64_t kept_blocks = 0;  ///< of kept sessions, wherever they lie
  std::uint64_t room_blocks = 0;  ///< in the segments that stay
};

/// The most recently used blocks survive, those of kept sessions before all others. Changes
/// nothing. Where `kept_blocks` exceeds `room_blocks` there are no moves: it cannot be done.
[[nodiscard]] Evacuation plan_evacuation(const Core& core, std::uint32_t keep_segments);

/// Copies what the plan moves and waits until it is on disk; then deletes the segments, the last
/// one first. The control file must be gone already: what is stored is told by the headers alone
/// from here on. Killed at any point, a rebuild finds each moved block in one place or in both.
[[nodiscard]] Result<void> carry_out(const Core& core, const Evacuation& plan);

}  // namespace esker::detail
