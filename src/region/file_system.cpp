#include "region/file_system.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <cerrno>
#include <string_view>

#include "base/error.hpp"
#include "region/file.hpp"

namespace esker::detail {

namespace {

struct UnsafeFileSystem {
  std::uint32_t magic;
  std::string_view name;
};

constexpr std::array<UnsafeFileSystem, 14> unsafe_file_systems{{{0x6969, "NFS"},
                                                                {0x517B, "SMB"},
                                                                {0xFF534D42, "CIFS"},
                                                                {0xFE534D42, "SMB2"},
                                                                {0x01021997, "9p"},
                                                                {0x65735546, "FUSE"},
                                                                {0x0BD00BD0, "Lustre"},
                                                                {0x47504653, "GPFS"},
                                                                {0x794C7630, "overlay"},
                                                                {0x5346414F, "AFS"},
                                                                {0x73757245, "Coda"},
                                                                {0x00C36400, "Ceph"},
                                                                {0x7461636F, "OCFS2"},
                                                                {0x01161970, "GFS2"}}};
constexpr std::uint32_t tmpfs_magic = 0x01021994;

std::uint32_t magic_of(int fd) noexcept {
  struct statfs status {};
  return fstatfs(fd, &status) == 0 ? static_cast<std::uint32_t>(status.f_type) : 0;
}

int hex_value(char letter) noexcept {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return -1;
}

}  // namespace

Result<FileSystemSpace> space_of(int fd, const std::string& path) {
  struct statvfs status {};
  if (fstatvfs(fd, &status) != 0) return fail_os(path, "statvfs", errno);
  const std::uint64_t unit = status.f_frsize;
  return FileSystemSpace{unit * status.f_blocks, unit * status.f_bavail};
}

bool on_tmpfs(int fd) noexcept { return magic_of(fd) == tmpfs_magic; }

Result<void> check_file_system(int fd, const std::string& path) {
  const std::uint32_t magic = magic_of(fd);
  for (const UnsafeFileSystem& system : unsafe_file_systems) {
    if (system.magic != magic) continue;
    return fail_field(Errc::invalid, path, "file system", system.name,
                      "a local one such as ext4, xfs, btrfs or tmpfs",
                      "in a container mount a volume, or see doc/caveats.md for "
                      "allow_unsafe_file_system");
  }
  return {};
}

Result<std::array<std::uint8_t, 16>> boot_id() {
  const std::string path = "/proc/sys/kernel/random/boot_id";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail_os(path, "open", errno);
  const File file(fd, path);
  std::array<char, 64> text{};
  const ssize_t got = read(file.fd(), text.data(), text.size());
  if (got < 36) return fail_os(path, "read", got < 0 ? errno : EIO);
  std::array<std::uint8_t, 16> id{};
  std::size_t nibbles = 0;
  for (const char letter : std::string_view(text.data(), 36)) {
    const int value = hex_value(letter);
    if (value < 0 || nibbles >= 32) continue;
    auto& byte = id[nibbles / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | value);
    ++nibbles;
  }
  if (nibbles != 32) return fail_field(Errc::io, path, "content", "no uuid", "a uuid");
  return id;
}

}  // namespace esker::detail
