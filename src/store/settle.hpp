#pragma once

#include <cstdint>

#include "store/core.hpp"
#include "store/walk.hpp"

namespace esker::detail {

enum class Settled : std::uint8_t {
  ours,    ///< our block is the one that stays
  theirs,  ///< another copy of the node stays: pinned, in `winner`
  nobody,  ///< both went (evicted, damaged): the node is not in the store
};

struct SettleResult {
  Settled outcome = Settled::nobody;
  Found winner;  ///< pinned for `theirs`
};

/// Puts the hints of a READY, unsettled block in place and sees to it that exactly one copy of its
/// node survives, whoever else publishes it. `owner` is whose block it is: this handle, or a dead
/// one that is being reaped. The block is pinned by the caller, who unpins it afterwards where the
/// result is not `ours`.
[[nodiscard]] SettleResult settle(Core& core, const PinnedBlock& block,
                                  std::uint32_t owner) noexcept;

}  // namespace esker::detail
