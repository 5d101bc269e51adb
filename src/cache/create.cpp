// Invariants
// 1. A cache file has its name only once it is whole and on disk; a kill before that leaves nothing
//    (where the file system knows O_TMPFILE), and the one who made it holds its lock from before.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <optional>

#include "base/error.hpp"
#include "cache/file.hpp"
#include "cache/place.hpp"
#include "region/file.hpp"
#include "sync/lock_registry.hpp"

namespace esker::detail {

namespace {

/// A file without a name that goes when it is closed, or one with a temporary name.
struct NewFile {
  std::optional<LockFile> lock;
  bool named = false;
};

Result<NewFile> make_file(const Place& place, const std::string& path) {
  const lock_registry::Guard guard;
  NewFile made;
  const int fd =
      raise_descriptor(openat(place.directory.fd(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  const int reason = errno;
  File file(fd, path);
  if (!file.valid()) {
    if (reason != EOPNOTSUPP && reason != EISDIR && reason != ENOENT && reason != EINVAL) {
      return fail_os(path, "create", reason);
    }
    auto named = place.directory.create_temporary(Sharing::owner);
    if (!named) return tl::make_unexpected(std::move(named).error());
    file = std::move(*named);
    made.named = true;
  }
  if (auto done = lock_registry::adopt(file, guard); !done) {
    return tl::make_unexpected(std::move(done).error());
  }
  made.lock.emplace(LockFile::over(std::move(file)));
  return made;
}

Failure there_already(const std::string& path) {
  return fail(Errc::invalid, path + ": there is something already; open it, or remove it first");
}

Result<void> give_name(const Place& place, const std::string& path, NewFile& made) {
  if (made.named) {
    auto published = place.directory.publish(made.lock->file(), place.name, false);
    if (!published) return tl::make_unexpected(std::move(published).error());
    made.named = false;
    if (!*published) return there_already(path);
  } else {
    const std::string self = "/proc/self/fd/" + std::to_string(made.lock->file().fd());
    if (linkat(AT_FDCWD, self.c_str(), place.directory.fd(), place.name.c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
      if (errno == EEXIST) return there_already(path);
      return fail_os(path, "give the finished file its name", errno);
    }
  }
  return {};
}

/// Takes the lock, the room on disk, and writes the header.
Result<void> prepare(NewFile& made, const CacheHeader& header, const std::string& path) {
  const File& file = made.lock->file();
  if (fchmod(file.fd(), 0600) != 0) return fail_os(path, "chmod 0600", errno);
  if (!made.lock->try_lock(cache_writer_byte)) return fail_os(path, "lock", errno);
  if (auto done = file.allocate(header.layout.bytes()); !done) return done;
  return file.write_at(0, encode_cache_header(header));
}

Result<Mapping> map_writable(const File& file, std::uint64_t bytes) {
  const lock_registry::Guard guard;
  return Mapping::map(file, bytes, Mapping::Mode::read_write);
}

/// On the way out of a creation that failed.
void remove_traces(const Place& place, NewFile& made, bool has_name) noexcept {
  const std::string& temporary = made.lock->file().path();
  if (has_name) static_cast<void>(place.directory.remove_file(place.name));
  if (!made.named) return;
  static_cast<void>(place.directory.remove_file(temporary.substr(temporary.rfind('/') + 1)));
}

}  // namespace

Result<std::unique_ptr<CacheFile>> CacheFile::create(const std::string& path, CacheHeader header,
                                                     const CacheFileOptions& options) {
  auto place = place_of(path, options);
  if (!place) return tl::make_unexpected(std::move(place).error());
  if (place->directory.has(place->name)) return there_already(path);
  auto fork_guard = ZeroMemory::allocate_wiped_on_fork();
  if (!fork_guard) return tl::make_unexpected(std::move(fork_guard).error());
  auto made = make_file(*place, path);
  if (!made) return tl::make_unexpected(std::move(made).error());
  bool has_name = false;
  const auto finish = [&]() -> Result<std::unique_ptr<CacheFile>> {
    const File& file = made->lock->file();
    auto done = prepare(*made, header, path);
    if (!done) return tl::make_unexpected(std::move(done).error());
    auto identity = identity_of(file, header);
    if (!identity) return tl::make_unexpected(std::move(identity).error());
    auto mapping = map_writable(file, header.layout.bytes());
    if (!mapping) return tl::make_unexpected(std::move(mapping).error());
    auto cache =
        std::make_unique<CacheFile>(Parts{path, CacheAccess::write, std::move(header), *identity,
                                          std::move(*mapping), std::move(*fork_guard)});
    cache->begin_writing(true);
    if (done = file.sync(); done) done = give_name(*place, path, *made);
    if (!done) return tl::make_unexpected(std::move(done).error());
    has_name = true;
    if (done = place->directory.sync(); !done) return tl::make_unexpected(std::move(done).error());
    {
      const lock_registry::Guard closing;
      lock_registry::close_lock_file(made->lock->file(), closing);
    }
    if (done = check_lock_is_kept(*place, path); !done) {
      return tl::make_unexpected(std::move(done).error());
    }
    return cache;
  };
  auto finished = finish();
  if (!finished) remove_traces(*place, *made, has_name);
  return finished;
}

}  // namespace esker::detail
