#pragma once

namespace esker::detail {

class Core;

/// Adds one segment, if the cap and the disk allow. False: evict instead. Waits at most
/// 0.1 s for another grower; after a failure the handle does not try again for ten seconds.
[[nodiscard]] bool grow(Core& core) noexcept;

}  // namespace esker::detail
