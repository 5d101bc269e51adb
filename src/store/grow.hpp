#pragma once

#include "region/directory.hpp"
#include "sync/lock.hpp"

namespace esker::detail {

class Core;

/// Adds one segment, if the cap, the home and the disk allow. False: evict instead. Waits at most
/// 0.1 s each for another grower of the store and of its home; after a failure the handle does not
/// try again for ten seconds.
[[nodiscard]] bool grow(Core& core) noexcept;

/// Removes what killed growers left half built, unless somebody grows the store right now.
void sweep_unfinished_segments(const LockFile& lock, const Directory& segments) noexcept;

}  // namespace esker::detail
