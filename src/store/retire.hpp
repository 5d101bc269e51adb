#pragma once

#include <cstdint>
#include <string_view>

#include "store/core.hpp"

namespace esker::detail {

/// READY → RETIRED and out of the index; the one routine for evicting, removing, superseding and
/// settling. False when the word was no longer `seen`.
[[nodiscard]] bool retire(Core& core, std::uint32_t block, BlockWord seen) noexcept;

/// READY → BAD: `what` of the block did not check ("header", "payload"). Counted and logged. The
/// caller pins the block.
void condemn(Core& core, std::uint32_t block, BlockWord seen, std::string_view what) noexcept;

/// RETIRED and BAD blocks that nobody pins become FREE; pins of the dead are reaped on the way.
/// Anyone may sweep at any time. Returns the number of freed blocks.
std::uint32_t sweep(Core& core) noexcept;

/// Hints of a block whose header is proved or being written by the caller.
[[nodiscard]] HintSet hints_of_block(const Core& core, const BlockHeader& header) noexcept;

}  // namespace esker::detail
