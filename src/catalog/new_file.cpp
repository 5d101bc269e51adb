// Invariants
// 1. A file gets its name when all its bytes are on the disk, and never changes afterwards.
// 2. Whatever fails, no temporary and no name without a use stays.
#include "catalog/new_file.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "base/random.hpp"
#include "catalog/load.hpp"
#include "catalog/room.hpp"

namespace esker::detail {

namespace {

/// Why a file could not be written, told of the file that was to be: the temporary is gone.
Failure not_written(const SessionArea& area, const std::string& name, const Error& cause) {
  if (cause.os_error == 0) return Failure(cause);
  auto failure =
      fail_os(area.directory.path() + "/" + name, "write this part of a session", cause.os_error);
  const bool no_room = cause.os_error == ENOSPC || cause.os_error == EDQUOT;
  failure.value()
      .message.append("; what was saved before is as it was: ")
      .append(no_room ? "make room on this disk, or remove sessions with `esker session rm`"
                      : "see to the directory and its disk")
      .append(", and try again");
  return failure;
}

/// A temporary that goes away again unless it gets its name.
class Temporary {
 public:
  Temporary(const SessionArea& area, File file) noexcept : area_(area), file_(std::move(file)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (named_ || !file_.valid()) return;
    const std::size_t slash = file_.path().rfind('/');
    unlinkat(area_.directory.fd(), file_.path().c_str() + slash + 1, 0);
  }

  [[nodiscard]] const File& file() const noexcept { return file_; }

  Result<bool> give_name(const std::string& name, const Naming& naming) {
    if (naming.modified) {
      const std::array<timespec, 2> times{*naming.modified, *naming.modified};
      if (futimens(file_.fd(), times.data()) != 0) {
        return fail_os(area_.directory.path() + "/" + name, "set the time of", errno);
      }
    }
    if (auto done = file_.sync(); !done) return not_written(area_, name, done.error());
    auto published = area_.directory.publish(file_, name, naming.replace);
    named_ = true;  // `publish` has removed it where it did not rename it
    return published;
  }

 private:
  SessionArea area_;
  File file_;
  bool named_ = false;
};

bool links_impossible(int reason) noexcept {
  return reason == EMLINK || reason == EPERM || reason == EACCES || reason == EOPNOTSUPP ||
         reason == ENOSYS;
}

}  // namespace

std::uint64_t fresh_suffix() noexcept {
  std::uint64_t suffix = 0;
  while (suffix == 0) suffix = random_u64();
  return suffix;
}

Result<bool> write_new_file(const SessionArea& area, const std::string& name,
                            std::span<const std::byte> head, std::span<const std::byte> body,
                            const Naming& naming) {
  auto file = area.directory.create_temporary(area.place.sharing);
  if (!file) return not_written(area, name, file.error());
  Temporary temporary(area, std::move(*file));
  auto done = temporary.file().write_at(0, head);
  if (done) done = temporary.file().write_at(head.size(), body);
  if (!done) return not_written(area, name, done.error());
  return temporary.give_name(name, naming);
}

Result<void> copy_part(const SessionArea& area, const std::string& from, const std::string& to) {
  auto source = open_part(area, from);
  if (!source) return tl::make_unexpected(std::move(source).error());
  auto status = source->status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  const auto size = static_cast<std::uint64_t>(status->st_size);
  const std::string path = area.directory.path() + "/" + to;
  if (auto ok = check_room(area, static_cast<std::int64_t>(disk_bytes_of(size)), path); !ok) {
    return ok;
  }
  auto file = area.directory.create_temporary(area.place.sharing);
  if (!file) return not_written(area, to, file.error());
  Temporary temporary(area, std::move(*file));
  constexpr std::uint64_t step_bytes = 1 << 18;
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(size, step_bytes)));
  for (std::uint64_t at = 0; at < size; at += buffer.size()) {
    const std::span part = std::span(buffer).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size - at)));
    if (auto done = source->read_at(at, part); !done) return done;
    if (auto done = temporary.file().write_at(at, part); !done) {
      return not_written(area, to, done.error());
    }
  }
  auto named = temporary.give_name(to, {});
  if (!named) return tl::make_unexpected(std::move(named).error());
  return {};
}

Result<void> link_part(const SessionArea& area, const std::string& from, const std::string& to) {
  const int fd = area.directory.fd();
  struct stat status {};
  if (fstatat(fd, from.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail_os(area.directory.path() + "/" + from, "stat", errno);
  }
  if (!S_ISREG(status.st_mode)) return {};
  if (linkat(fd, from.c_str(), fd, to.c_str(), 0) == 0) return {};
  const int reason = errno;
  if (links_impossible(reason)) return copy_part(area, from, to);
  return fail_os(area.directory.path() + "/" + from, "link to " + to, reason);
}

Result<void> remove_anything(const SessionArea& area, const std::string& file) {
  const int fd = area.directory.fd();
  if (unlinkat(fd, file.c_str(), 0) == 0 || errno == ENOENT) return {};
  if ((errno == EISDIR || errno == EPERM) && unlinkat(fd, file.c_str(), AT_REMOVEDIR) == 0) {
    return {};
  }
  return fail_os(area.directory.path() + "/" + file, "remove", errno);
}

NewParts::~NewParts() {
  for (const std::string& name : names_) unlinkat(area_.directory.fd(), name.c_str(), 0);
}

}  // namespace esker::detail
