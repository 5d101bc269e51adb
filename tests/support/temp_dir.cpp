#include "support/temp_dir.hpp"

#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "catch.hpp"

namespace esker::test {

namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string(value) == "1";
}

std::filesystem::path base(Place place) {
  if (place == Place::memory) return "/dev/shm";
  const char* chosen = std::getenv("TMPDIR");
  return chosen != nullptr && *chosen != '\0' ? chosen : "/var/tmp";
}

void mount_tmpfs(const std::string& path, unsigned long flags, const std::string& data) {
  if (::mount("esker-test", path.c_str(), "tmpfs", flags, data.c_str()) != 0) {
    throw std::runtime_error(
        "mounting a tmpfs with " + data + ": " + std::strerror(errno) +
        " (run as root, or set ESKER_TEST_NO_MOUNT=1 to leave such tests out)");
  }
}

}  // namespace

TempDir::TempDir(Place place) {
  std::string name = (base(place) / "esker-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool may_mount() {
  if (!is_set("ESKER_TEST_NO_MOUNT")) return true;
  WARN("left out: ESKER_TEST_NO_MOUNT=1");
  return false;
}

bool may_change_user() {
  if (::geteuid() == 0) return true;
  if (!is_set("ESKER_TEST_NO_ROOT")) {
    throw std::runtime_error("needs root (set ESKER_TEST_NO_ROOT=1 to leave such tests out)");
  }
  WARN("left out: ESKER_TEST_NO_ROOT=1");
  return false;
}

SmallDisk::SmallDisk(std::uint64_t bytes) {
  mount_tmpfs(path(), 0, "size=" + std::to_string(bytes) + ",mode=0700");
}

SmallDisk::~SmallDisk() { ::umount2(path().c_str(), MNT_DETACH); }

std::uint64_t SmallDisk::free_bytes() const {
  struct statvfs now {};
  ::statvfs(path().c_str(), &now);
  return std::uint64_t{now.f_bfree} * now.f_frsize;
}

void SmallDisk::resize(std::uint64_t bytes) const {
  mount_tmpfs(path(), MS_REMOUNT, "size=" + std::to_string(bytes));
}

void SmallDisk::make_read_only() const { mount_tmpfs(path(), MS_REMOUNT | MS_RDONLY, ""); }

}  // namespace esker::test
