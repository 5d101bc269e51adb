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

/// `Errc::io` when a descriptor that a write to these blocks would use is the segment's no more.
[[nodiscard]] Result<void> check_descriptors(const Core& core,
                                             const std::vector<PinnedBlock>& blocks);

/// Frees the disk space of reserved blocks, which wipes them; their headers become zero as well.
[[nodiscard]] Result<void> punch_blocks(const Core& core, const std::vector<PinnedBlock>& blocks);

/// Which FREE blocks are punched.
enum class Wipe : std::uint8_t {
  marked,  ///< removed while a reader held them
  used,    ///< those, and all that hold rows or headers of an earlier life
  all,     ///< to return their disk space
};

/// Reserves FREE blocks in [first, end) for a moment, to punch them.
[[nodiscard]] std::vector<PinnedBlock> take_for_punching(Core& core, std::uint32_t first,
                                                         std::uint32_t end, Wipe which);

/// Punches FREE blocks of the whole store, a few at a time so that others find room meanwhile.
[[nodiscard]] Result<void> wipe_free(Core& core, Wipe which);

/// Gives a reserved block back. False: it was no longer reserved.
bool abandon(Core& core, const PinnedBlock& block) noexcept;
/// Gives reserved blocks back.
void abandon(Core& core, std::vector<PinnedBlock>& blocks) noexcept;

}  // namespace esker::detail
