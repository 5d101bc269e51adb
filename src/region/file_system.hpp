#pragma once

#include <array>
#include <cstdint>
#include <esker/result.hpp>
#include <string>

namespace esker::detail {

struct FileSystemSpace {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;  ///< for this user
};

[[nodiscard]] Result<FileSystemSpace> space_of(int fd, const std::string& path);

[[nodiscard]] bool on_tmpfs(int fd) noexcept;

/// Refuses file systems whose mappings or locks are not coherent: NFS, SMB, 9p, FUSE, overlay…
[[nodiscard]] Result<void> check_file_system(int fd, const std::string& path);

/// The kernel's id of this boot, 16 bytes.
[[nodiscard]] Result<std::array<std::uint8_t, 16>> boot_id();

}  // namespace esker::detail
