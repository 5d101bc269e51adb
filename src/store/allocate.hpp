#pragma once

#include <cstdint>
#include <vector>

#include "store/core.hpp"

namespace esker::detail {

/// Reserves up to `wanted` blocks for this handle, pinned, their headers wiped, adjacent where
/// possible and `after` (or UINT32_MAX) first. Makes room by sweeping, reaping, growing and
/// evicting, in this order. Fewer blocks when the store is full; an error when a header cannot be
/// wiped.
[[nodiscard]] Result<std::vector<PinnedBlock>> allocate(Core& core, std::uint32_t wanted,
                                                        std::uint32_t after);

/// Frees the disk space of reserved blocks, which wipes them; their headers become zero as well.
[[nodiscard]] Result<void> punch_blocks(const Core& core, const std::vector<PinnedBlock>& blocks);

/// Reserves FREE blocks in [first, end) for a moment, to punch them; `only_marked`: those that were
/// removed while a reader held them.
[[nodiscard]] std::vector<PinnedBlock> take_for_punching(Core& core, std::uint32_t first,
                                                         std::uint32_t end, bool only_marked);

/// Gives reserved blocks back.
void abandon(Core& core, std::vector<PinnedBlock>& blocks) noexcept;

}  // namespace esker::detail
