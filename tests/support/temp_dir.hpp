#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace esker::test {

enum class Place {
  memory,  ///< tmpfs at /dev/shm
  disk,    ///< $TMPDIR, else /var/tmp
};

/// A directory of its own for one test; removed with everything in it.
class TempDir {
 public:
  explicit TempDir(Place place = Place::memory);
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

/// False, with a warning, when ESKER_TEST_NO_MOUNT=1 says that mounting is not possible here.
/// Without that word a test that may not mount fails: it must not pass by doing nothing.
[[nodiscard]] bool may_mount();
/// False, with a warning, when this process is not root and ESKER_TEST_NO_ROOT=1 says so.
[[nodiscard]] bool may_change_user();

/// A tmpfs of exactly this size.
class SmallDisk {
 public:
  explicit SmallDisk(std::uint64_t bytes);
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk();

  [[nodiscard]] std::string operator/(const std::string& name) const { return dir_ / name; }
  [[nodiscard]] std::string path() const { return dir_.path().string(); }
  [[nodiscard]] std::uint64_t free_bytes() const;
  void resize(std::uint64_t bytes) const;
  void make_read_only() const;

 private:
  TempDir dir_;
};

}  // namespace esker::test
