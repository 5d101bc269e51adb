// Invariants
// 1. A cold file under its name is whole and is never written to again; it only goes.
// 2. Names appear and files go under COLD alone. Readers need no lock: a file that has gone is a
//    miss.
// 3. The sizes of the named files and of the one that is being written never exceed the share.
#include "store/cold_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <tuple>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "base/random.hpp"

namespace esker::detail {

namespace {

constexpr std::string_view suffix = ".esnap";
constexpr std::size_t digits = 16;

/// What FileSink and Directory call their temporaries begins with a dot, and no cold file does.
bool is_temporary(std::string_view name) noexcept { return name.starts_with('.'); }

}  // namespace

bool is_cold_name(std::string_view name) noexcept {
  return name.size() == digits + suffix.size() && name.ends_with(suffix) &&
         name.find_first_not_of("0123456789abcdef") == digits;
}

std::string new_cold_name() { return hex(random_u64()) + std::string(suffix); }

Result<std::optional<Directory>> open_cold(const Directory& store) {
  struct stat status {};
  if (fstatat(store.fd(), file_names::cold, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::optional<Directory>();
    return fail_os(store.path() + "/" + file_names::cold, "stat", errno);
  }
  if (!S_ISDIR(status.st_mode)) {
    return fail_field(Errc::corrupt, store.path() + "/" + file_names::cold, "file type",
                      "no directory", "a directory", "remove it");
  }
  auto cold = Directory::open_below(store, file_names::cold);
  if (!cold && cold.error().code == Errc::missing) return std::optional<Directory>();
  if (!cold) return failure_of(cold);
  return std::optional<Directory>(std::move(*cold));
}

Result<std::vector<ColdFileStatus>> list_cold(const Directory& cold) {
  auto names = cold.names();
  if (!names) return failure_of(names);
  std::vector<ColdFileStatus> files;
  for (std::string& name : *names) {
    struct stat status {};
    if (!is_cold_name(name) ||
        fstatat(cold.fd(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    const std::int64_t used =
        std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    files.push_back({std::move(name), static_cast<std::uint64_t>(status.st_size),
                     static_cast<std::uint64_t>(std::max<std::int64_t>(used, 0))});
  }
  std::sort(files.begin(), files.end(), [](const ColdFileStatus& a, const ColdFileStatus& b) {
    return std::tie(a.used_unix_ns, a.name) < std::tie(b.used_unix_ns, b.name);
  });
  return files;
}

void touch_cold(const Directory& cold, const std::string& name,
                std::optional<std::uint64_t> unix_ns) noexcept {
  timespec times[2]{};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_nsec = UTIME_NOW;
  if (unix_ns) {
    times[1].tv_sec = static_cast<time_t>(*unix_ns / 1'000'000'000);
    times[1].tv_nsec = static_cast<long>(*unix_ns % 1'000'000'000);
  }
  // A file that has gone, or that belongs to somebody else of the group, keeps its time.
  utimensat(cold.fd(), name.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

Result<LockFile> lock_cold(const Directory& store, Sharing sharing, std::uint32_t deadline_ms) {
  auto lock = LockFile::open(store, sharing);
  if (!lock) return failure_of(lock);
  if (!lock->lock(lock_bytes::cold, deadline_ms)) {
    return fail(Errc::busy, store.path() + "/" + file_names::cold +
                                ": another process has been writing cold files for more than " +
                                std::to_string(deadline_ms) +
                                " ms; if it is stopped, continue or end it");
  }
  return std::move(*lock);
}

void sweep_unfinished_cold(const Directory& cold) noexcept {
  auto swept = guarded([&]() -> Result<void> {
    auto names = cold.names(".");
    if (!names) return failure_of(names);
    for (const std::string& name : *names) {
      if (is_temporary(name)) unlinkat(cold.fd(), name.c_str(), 0);
    }
    return {};
  });
  static_cast<void>(swept);  // what is left is swept by whoever comes next
}

void sweep_unfinished_cold(const LockFile& lock, const Directory& store) noexcept {
  auto cold = guarded([&] { return open_cold(store); });
  if (!cold || !*cold || !lock.try_lock(lock_bytes::cold)) return;
  sweep_unfinished_cold(**cold);
  lock.unlock(lock_bytes::cold);
}

Result<void> remove_cold(const Directory& store) {
  auto cold = open_cold(store);
  if (!cold && cold.error().code == Errc::corrupt) return {};  // nothing that Esker has made
  if (!cold) return failure_of(cold);
  if (!*cold) return {};
  auto names = (*cold)->names();
  if (!names) return failure_of(names);
  for (const std::string& name : *names) {
    if (!is_cold_name(name) && !is_temporary(name)) continue;
    if (auto done = (*cold)->remove_file(name); !done) return done;
  }
  if (unlinkat(store.fd(), file_names::cold, AT_REMOVEDIR) != 0 && errno == ENOTEMPTY) {
    return fail(Errc::invalid, (*cold)->path() +
                                   ": the store's files are gone, but this directory also holds "
                                   "others, which are not Esker's; remove them yourself");
  }
  return {};
}

Result<void> trim_cold(const Directory& store, std::uint64_t share_bytes) {
  auto cold = open_cold(store);
  if (!cold) return failure_of(cold);
  if (!*cold) return {};
  auto room = ColdRoom::open(**cold, share_bytes);
  return room ? room->make(0, {}) : failure_of(room);
}

Result<ColdRoom> ColdRoom::open(const Directory& cold, std::uint64_t share_bytes) {
  auto files = list_cold(cold);
  if (!files) return failure_of(files);
  ColdRoom room(cold, share_bytes);
  room.files_ = std::move(*files);
  for (const ColdFileStatus& file : room.files_) room.used_bytes_ += file.bytes;
  return room;
}

Result<void> ColdRoom::make(std::uint64_t bytes, std::string_view keep) {
  auto next = files_.begin();
  while (used_bytes_ > share_bytes_ || bytes > share_bytes_ - used_bytes_) {
    while (next != files_.end() && next->name == keep) ++next;
    if (next == files_.end()) {
      return fail(Errc::full, cold_->path() + ": the share for cold blocks is " +
                                  size_text(share_bytes_) + ", and a file of more than " +
                                  size_text(bytes) + " does not fit into it");
    }
    if (auto done = cold_->remove_file(next->name); !done) return done;
    used_bytes_ -= next->bytes;
    dropped_.push_back(std::move(next->name));
    next = files_.erase(next);
  }
  return {};
}

Result<std::unique_ptr<ColdSink>> ColdSink::create(const Directory& cold, Sharing sharing,
                                                   ColdRoom& room, std::string keep) {
  std::string name = new_cold_name();
  auto file = FileSink::create_in(cold, name, sharing);
  if (!file) return failure_of(file);
  return std::unique_ptr<ColdSink>(
      new ColdSink(std::move(*file), std::move(name), room, std::move(keep)));
}

Result<void> ColdSink::write(std::span<const std::byte> bytes) {
  if (auto fits = room_.make(written_bytes_ + bytes.size(), keep_); !fits) return fits;
  written_bytes_ += bytes.size();
  return file_->write(bytes);
}

}  // namespace esker::detail
