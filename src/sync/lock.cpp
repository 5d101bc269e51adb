// Invariants
// 1. Nothing here waits without a deadline.
// 2. A lock is released by F_UNLCK before its descriptor is closed: close alone does not unlock
//    while a forked child holds a copy of the descriptor.
#include "sync/lock.hpp"

#include <fcntl.h>
#include <time.h>
#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "sync/lock_registry.hpp"

namespace esker::detail {

namespace {

struct flock range(short type, std::uint64_t first, std::uint64_t count) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(first);
  lock.l_len = static_cast<off_t>(count);
  return lock;
}

void sleep_ns(std::uint64_t ns) noexcept {
  const timespec time{static_cast<time_t>(ns / 1'000'000'000U),
                      static_cast<long>(ns % 1'000'000'000U)};
  nanosleep(&time, nullptr);
}

}  // namespace

LockFile::~LockFile() {
  if (!file_.valid()) return;
  struct flock all = range(F_UNLCK, 0, 0);
  fcntl(file_.fd(), F_OFD_SETLK, &all);
  const lock_registry::Guard guard;
  lock_registry::close_lock_file(file_, guard);
}

Result<LockFile> LockFile::open(const Directory& store, Sharing sharing, bool create) {
  auto file = lock_registry::open_lock_file(store, sharing, create);
  if (!file) return tl::make_unexpected(std::move(file).error());
  return LockFile(std::move(*file));
}

bool LockFile::try_lock(std::uint64_t byte) const noexcept {
  struct flock lock = range(F_WRLCK, byte, 1);
  int rc = 0;
  do {
    rc = fcntl(file_.fd(), F_OFD_SETLK, &lock);
  } while (rc != 0 && errno == EINTR);
  return rc == 0;
}

bool LockFile::lock(std::uint64_t byte, std::uint32_t deadline_ms) const noexcept {
  const std::uint64_t deadline_ns = monotonic_ns() + std::uint64_t{deadline_ms} * 1'000'000U;
  for (std::uint64_t pause_ns = 50'000; !try_lock(byte);
       pause_ns = std::min<std::uint64_t>(pause_ns * 2, 5'000'000)) {
    if (monotonic_ns() >= deadline_ns) return false;
    sleep_ns(pause_ns);
  }
  return true;
}

void LockFile::unlock(std::uint64_t byte) const noexcept {
  struct flock lock = range(F_UNLCK, byte, 1);
  fcntl(file_.fd(), F_OFD_SETLK, &lock);
}

bool LockFile::held_by_others(std::uint64_t first, std::uint64_t count) const noexcept {
  return bytes_held_by_others(file_.fd(), first, count);
}

bool bytes_held_by_others(int fd, std::uint64_t first, std::uint64_t count) noexcept {
  struct flock lock = range(F_WRLCK, first, count);
  return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace esker::detail
