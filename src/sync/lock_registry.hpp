#pragma once

#include <esker/result.hpp>

#include "region/directory.hpp"

namespace esker::detail {

/// Every descriptor with byte locks (of a store's `lock` file, of a cache) that this process has
/// open, so that a forked child can close its copies: an inherited copy would keep the parent's
/// locks alive after the parent's death.
/// Threads: any. `fork` in another thread waits until no descriptor is half made.
namespace lock_registry {

/// Held while a lock descriptor is opened, turned into a mapping or closed; fork waits for it.
class Guard {
 public:
  Guard() noexcept;
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
};

/// Opens `lock` and registers the descriptor.
[[nodiscard]] Result<File> open_lock_file(const Directory& store, Sharing sharing, bool create);

/// Registers a descriptor that was opened while `guard` was held.
[[nodiscard]] Result<void> adopt(const File& file, const Guard& guard);

/// Unregisters and closes. `guard` proves that the registry is held.
void close_lock_file(File& file, const Guard& guard) noexcept;

}  // namespace lock_registry

}  // namespace esker::detail
