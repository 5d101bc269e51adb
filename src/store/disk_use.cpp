// Invariants
// 1. The time of `lock` is set by whoever makes use of the store, and by nothing else: looking
//    after a store must not keep it young.
#include "store/disk_use.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <set>
#include <utility>

namespace esker::detail {

namespace {

class Sum {
 public:
  void add(const struct stat& status) {
    if (status.st_nlink > 1 && S_ISREG(status.st_mode) &&
        !seen_.emplace(status.st_dev, status.st_ino).second) {
      return;
    }
    use.bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
    if (!S_ISREG(status.st_mode)) return;
    const std::int64_t modified =
        std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    use.last_used_unix_ns = std::max(use.last_used_unix_ns, modified);
  }

  /// `levels` of directories below this one are looked into.
  void add_all(const Directory& directory, int levels) {
    auto names = directory.names();
    if (!names) return;
    for (const std::string& name : *names) {
      struct stat status {};
      if (fstatat(directory.fd(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      add(status);
      if (levels == 0 || !S_ISDIR(status.st_mode)) continue;
      if (auto below = Directory::open_below(directory, name)) add_all(*below, levels - 1);
    }
  }

  DiskUse use;

 private:
  std::set<std::pair<dev_t, ino_t>> seen_;
};

}  // namespace

DiskUse disk_use(const Directory& store) {
  Sum sum;
  sum.add_all(store, 1);
  return sum.use;
}

void mark_opened(const Directory& store) noexcept {
  // A store that this process may not write to is used all the same: nothing depends on it.
  static_cast<void>(utimensat(store.fd(), file_names::lock, nullptr, AT_SYMLINK_NOFOLLOW));
}

std::uint64_t last_opened_unix_ns(const Directory& store) noexcept {
  struct stat status {};
  if (fstatat(store.fd(), file_names::lock, &status, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  if (status.st_mtim.tv_sec < 0) return 0;
  return static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
}

}  // namespace esker::detail
