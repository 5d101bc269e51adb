#pragma once

#include <cstdint>

#include "region/directory.hpp"

namespace esker::detail {

/// What the files of a store take, as the file system tells it.
struct DiskUse {
  std::uint64_t bytes = 0;             ///< allocated, directories included
  std::int64_t last_used_unix_ns = 0;  ///< when a file was last written to
};

/// Of a store's directory and the directories in it. Symbolic links are not followed, and a file
/// with several names counts once. What vanishes meanwhile is left out.
[[nodiscard]] DiskUse disk_use(const Directory& store);

/// Marks a store as opened now: `lock`, which is never written to otherwise, tells by its time of
/// change when somebody last made use of the store.
void mark_opened(const Directory& store) noexcept;
/// When that was; 0 where it cannot be told.
[[nodiscard]] std::uint64_t last_opened_unix_ns(const Directory& store) noexcept;

}  // namespace esker::detail
