#pragma once

#include <sys/stat.h>
#include <cstdint>
#include <esker/result.hpp>
#include <string_view>

#include "base/bytes.hpp"
#include "catalog/area.hpp"

namespace esker::detail {

/// Files are counted by their size, rounded up to the blocks of common file systems: that can be
/// told before a file is written, and is what it takes then.
inline constexpr std::uint64_t disk_block_bytes = 4096;

[[nodiscard]] constexpr std::uint64_t disk_bytes_of(std::uint64_t file_bytes) noexcept {
  return file_bytes > UINT64_MAX - disk_block_bytes ? UINT64_MAX - disk_block_bytes + 1
                                                    : align_up(file_bytes, disk_block_bytes);
}
[[nodiscard]] inline std::uint64_t disk_bytes_of(const struct stat& status) noexcept {
  return disk_bytes_of(static_cast<std::uint64_t>(status.st_size));
}

/// Of all files together; an inode with several names counts once.
[[nodiscard]] Result<std::uint64_t> used_disk_bytes(const SessionArea& area);

/// `Errc::full` unless `growth` more bytes fit into the share.
[[nodiscard]] Result<void> check_room(const SessionArea& area, std::int64_t growth,
                                      std::string_view path);
/// The same, but sweeps before it refuses: only while no session is half made.
[[nodiscard]] Result<void> require_room(const SessionArea& area, std::int64_t growth,
                                        std::string_view path);

/// Removes the parts of one session, but for those that `token_suffix` and `state_suffix` name.
void remove_stale_parts(const SessionArea& area, std::string_view stem, std::uint64_t token_suffix,
                        std::uint64_t state_suffix);
/// Removes temporaries, and parts that no session file names. Those of a damaged session stay.
void sweep_parts(const SessionArea& area);

}  // namespace esker::detail
