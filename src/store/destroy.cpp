// Invariants
// 1. INIT is held throughout, and no seat is taken: nobody is attached, and nobody can attach.
// 2. The superblock goes first, so that a half destroyed store is no store; `lock` goes last.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "region/directory.hpp"
#include "store/attach.hpp"
#include "store/cold_files.hpp"
#include "store/create.hpp"
#include "sync/lock.hpp"

namespace esker::detail {

namespace {

bool is_segment_name(const std::string& name) {
  return name.size() == 5 && name.find_first_not_of("0123456789") == std::string::npos;
}

Result<void> foreign_file(const Directory& directory) {
  auto left = directory.names();
  if (!left || left->empty()) return {};
  return fail(Errc::invalid, directory.path() +
                                 ": the store is gone, but this directory also holds \"" +
                                 left->front() + "\", which is not Esker's; remove it yourself");
}

Result<void> remove_segments(const Directory& directory) {
  auto segments = Directory::open_below(directory, file_names::segments);
  if (!segments) return {};
  auto names = segments->names();
  if (!names) return tl::make_unexpected(std::move(names).error());
  for (const std::string& name : *names) {
    if (!is_segment_name(name) && !name.starts_with(file_names::temporary_prefix)) continue;
    if (auto done = segments->remove_file(name); !done) return done;
  }
  if (unlinkat(directory.fd(), file_names::segments, AT_REMOVEDIR) != 0 && errno == ENOTEMPTY) {
    return foreign_file(*segments);
  }
  return {};
}

bool is_session_part(const std::string& name) {
  return name.ends_with(".session") || name.ends_with(".tokens") || name.ends_with(".state") ||
         name.starts_with(file_names::temporary_prefix);
}

Result<void> remove_files(const Directory& directory) {
  if (auto done = directory.remove_file(file_names::superblock); !done) return done;
  if (auto done = directory.remove_file(file_names::control); !done) return done;
  auto segments = remove_segments(directory);
  if (!segments && segments.error().code != Errc::invalid) return segments;
  auto sessions = remove_sessions(directory);
  if (!sessions && sessions.error().code != Errc::invalid) return sessions;
  auto cold = remove_cold(directory);
  if (!cold && cold.error().code != Errc::invalid) return cold;
  if (auto done = directory.remove_file(file_names::cache_tag); !done) return done;
  if (auto done = directory.remove_file(file_names::model_file); !done) return done;
  directory.sweep_temporaries();
  if (auto done = directory.remove_file(file_names::lock); !done) return done;
  if (!segments) return segments;
  return sessions ? cold : sessions;
}

/// The bytes of all seats that this store, or a damaged one, may have.
std::uint32_t seats_of(const Result<Superblock>& superblock) {
  return superblock ? superblock->seats : max_seats;
}

/// INIT of a store that nobody has open.
Result<LockFile> lock_unused(const Directory& directory, std::uint32_t wait_ms) {
  const std::string& path = directory.path();
  auto superblock = read_superblock(directory);
  // A damaged superblock tells no sharing; the wider one accepts both.
  const Sharing sharing = superblock ? superblock->sharing : Sharing::group;
  auto lock = LockFile::open(directory, sharing, true);
  if (!lock) return lock;
  if (!lock->lock(lock_bytes::init, wait_ms)) {
    return fail(Errc::busy, path + ": a process is just opening this store");
  }
  if (lock->held_by_others(lock_bytes::seat, seats_of(superblock))) {
    return fail(Errc::busy, path + ": a process has this store open; see `esker ps`");
  }
  return lock;
}

}  // namespace

bool unfinished(const Directory& directory) {
  auto names = directory.names();
  if (!names || names->empty() || directory.has(file_names::superblock)) return false;
  return std::all_of(names->begin(), names->end(), is_unfinished_part);
}

Result<void> remove_sessions(const Directory& directory) {
  struct stat status {};
  if (fstatat(directory.fd(), file_names::sessions, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISDIR(status.st_mode)) {
    return {};  // nothing that Esker has made
  }
  auto sessions = Directory::open_below(directory, file_names::sessions);
  if (!sessions) return tl::make_unexpected(std::move(sessions).error());
  auto names = sessions->names();
  if (!names) return tl::make_unexpected(std::move(names).error());
  for (const std::string& name : *names) {
    if (!is_session_part(name)) continue;
    if (auto done = sessions->remove_file(name); !done) return done;
  }
  if (unlinkat(directory.fd(), file_names::sessions, AT_REMOVEDIR) != 0 && errno == ENOTEMPTY) {
    return foreign_file(*sessions);
  }
  return {};
}

Result<void> destroy_store(const std::string& path) {
  constexpr std::uint32_t wait_ms = 1000;
  auto directory = Directory::open(path);
  if (!directory) return tl::make_unexpected(std::move(directory).error());
  if (!directory->has(file_names::superblock) && !unfinished(*directory)) {
    return fail(Errc::missing, path + ": no store here (there is no file \"esker\")");
  }
  auto lock = lock_unused(*directory, wait_ms);
  if (!lock) return tl::make_unexpected(std::move(lock).error());
  if (auto done = remove_files(*directory); !done) return done;
  if (rmdir(path.c_str()) == 0 || errno == EBUSY) return {};
  return foreign_file(*directory);
}

Result<bool> destroy_below(const Directory& home, const std::string& name,
                           const std::function<bool(const Directory&)>& still, bool dry_run) {
  auto directory = Directory::open_below(home, name);
  if (!directory) return tl::make_unexpected(std::move(directory).error());
  auto lock = lock_unused(*directory, 0);
  if (!lock) return tl::make_unexpected(std::move(lock).error());
  auto status = lock->file().status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  if (status->st_nlink == 0 || !still(*directory)) return false;
  if (dry_run) return true;
  // Files that are not Esker's keep the directory, and nothing else of the store.
  auto done = remove_files(*directory);
  if (!done && done.error().code != Errc::invalid) return tl::make_unexpected(done.error());
  unlinkat(home.fd(), name.c_str(), AT_REMOVEDIR);
  return true;
}

}  // namespace esker::detail
