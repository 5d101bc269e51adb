#pragma once

#include <cstdint>
#include <optional>

namespace esker {

/// The new size of a store. What is not given stays.
struct ResizeOptions {
  std::optional<std::uint64_t> capacity_bytes;
  std::optional<std::uint64_t> cold_bytes;  ///< of the capacity, for compressed blocks
  bool dry_run = false;
};

/// What `Store::resize` did, or would do.
struct Resized {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t cold_bytes = 0;
  std::uint32_t max_segments = 0;
  std::uint64_t old_capacity_bytes = 0;
  std::uint64_t old_cold_bytes = 0;
  std::uint32_t removed_segments = 0;  ///< files that were deleted
  std::uint64_t disk_bytes = 0;        ///< returned to the file system with them
  std::uint64_t moved_blocks = 0;      ///< out of these files, into others
  std::uint64_t dropped_blocks = 0;    ///< the least recently used, for want of room
};

}  // namespace esker
