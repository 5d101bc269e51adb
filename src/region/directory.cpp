#include "region/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/error.hpp"
#include "base/random.hpp"

namespace esker::detail {

namespace {

constexpr mode_t permission_bits = 07777;

mode_t directory_mode(Sharing sharing) { return sharing == Sharing::group ? 02770 : 0700; }
mode_t file_mode(Sharing sharing) { return sharing == Sharing::group ? 0660 : 0600; }

std::string octal(mode_t mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & permission_bits));
  return text.data();
}

Result<File> open_directory(int parent_fd, const std::string& name, std::string path) {
  const int fd =
      raise_descriptor(openat(parent_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd < 0) {
    const int reason = errno;
    auto failure = fail_os(path, "open", reason);
    if (reason == ENOENT || reason == ENOTDIR) failure.value().code = Errc::missing;
    return failure;
  }
  return File(fd, std::move(path));
}

Result<void> make_parents(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (mkdir(parent.c_str(), 0700) != 0 && errno != EEXIST) {
      return fail_os(parent, "mkdir", errno);
    }
  }
  return {};
}

}  // namespace

std::string segment_name(std::uint32_t index) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%05u", index);
  return text.data();
}

Result<Directory> Directory::open(const std::string& path) {
  if (path.empty()) return fail(Errc::invalid, "the path of a store must not be empty");
  auto handle = open_directory(AT_FDCWD, path, path);
  if (handle) return Directory(std::move(*handle));
  Error error = std::move(handle).error();
  if (error.code == Errc::missing) {
    const bool other = error.os_error == ENOTDIR;
    error.message = path + ": no store here (" +
                    (other ? "that is no directory)" : "there is no such directory)");
  }
  return tl::make_unexpected(std::move(error));
}

Result<Directory> Directory::open_below(const Directory& parent, const std::string& name) {
  auto handle = open_directory(parent.fd(), name, parent.path() + "/" + name);
  if (!handle) return tl::make_unexpected(std::move(handle).error());
  return Directory(std::move(*handle));
}

Result<Directory> Directory::make(int parent_fd, const std::string& parent_path,
                                  const std::string& name, Sharing sharing) {
  const std::string path = parent_path.empty() ? name : parent_path + "/" + name;
  const bool made = mkdirat(parent_fd, name.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return fail_os(path, "mkdir", errno);
  auto handle = open_directory(parent_fd, name, path);
  if (!handle) return tl::make_unexpected(std::move(handle).error());
  Directory directory(std::move(*handle));
  if (made && fchmod(directory.fd(), directory_mode(sharing)) != 0) {
    return fail_os(path, "chmod " + octal(directory_mode(sharing)), errno);
  }
  return directory;
}

Result<Directory> Directory::create(const std::string& path, Sharing sharing) {
  if (path.empty()) return fail(Errc::invalid, "the path of a store must not be empty");
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  if (auto done = make_parents(trimmed); !done) return tl::make_unexpected(done.error());
  return make(AT_FDCWD, {}, trimmed, sharing);
}

Result<Directory> Directory::create_below(const Directory& parent, const std::string& name,
                                          Sharing sharing) {
  auto directory = make(parent.fd(), parent.path(), name, sharing);
  if (!directory) return directory;
  struct stat above {};
  struct stat own {};
  if (geteuid() == 0 && fstat(parent.fd(), &above) == 0 && fstat(directory->fd(), &own) == 0 &&
      own.st_uid != above.st_uid && fchown(directory->fd(), above.st_uid, above.st_gid) != 0) {
    return fail_os(directory->path(), "chown", errno);
  }
  return directory;
}

Result<void> Directory::check_permissions(Sharing sharing) const {
  auto status = handle_.status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  const mode_t mode = status->st_mode & permission_bits;
  const mode_t wanted = directory_mode(sharing);
  if ((mode & 07777 & ~wanted & 0077) != 0 || (sharing == Sharing::group && mode != wanted)) {
    return fail_field(
        Errc::invalid, path(), "mode", octal(mode), octal(wanted),
        "others could read or change the cache: chmod " + octal(wanted) + " " + path());
  }
  const uid_t user = geteuid();
  if (sharing == Sharing::owner && user != 0 && status->st_uid != user) {
    return fail_field(Errc::invalid, path(), "owner", "user " + std::to_string(status->st_uid),
                      "user " + std::to_string(user),
                      "create the store with group sharing for several users");
  }
  return {};
}

Result<File> Directory::open_file(const std::string& name, int flags, Sharing sharing) const {
  auto file = File::open_at(fd(), path(), name, flags);
  if (!file) return file;
  auto status = file->status();
  auto above = handle_.status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  if (!above) return tl::make_unexpected(std::move(above).error());
  const mode_t mode = status->st_mode & permission_bits;
  if ((mode & ~file_mode(sharing)) != 0) {
    return fail_field(Errc::invalid, file->path(), "mode", octal(mode), octal(file_mode(sharing)),
                      "chmod " + octal(file_mode(sharing)) + " " + file->path());
  }
  const bool same_owner =
      sharing == Sharing::group ? status->st_gid == above->st_gid : status->st_uid == above->st_uid;
  if (!same_owner) {
    return fail_field(Errc::invalid, file->path(), sharing == Sharing::group ? "group" : "owner",
                      "not that of the store's directory", "the same",
                      "someone else made this file: remove it or chown it");
  }
  return file;
}

Result<void> Directory::adopt(const File& file, Sharing sharing) const {
  auto above = handle_.status();
  if (!above) return tl::make_unexpected(std::move(above).error());
  if (geteuid() == 0 && fchown(file.fd(), above->st_uid, above->st_gid) != 0) {
    return fail_os(file.path(), "chown", errno);
  }
  if (fchmod(file.fd(), file_mode(sharing)) != 0) return fail_os(file.path(), "chmod", errno);
  return {};
}

Result<File> Directory::create_file(const std::string& name, Sharing sharing) const {
  auto file = File::open_at(fd(), path(), name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (!file) return file;
  if (auto done = adopt(*file, sharing); !done) {
    unlinkat(fd(), name.c_str(), 0);
    return tl::make_unexpected(std::move(done).error());
  }
  return file;
}

Result<File> Directory::create_temporary(Sharing sharing) const {
  return create_file(std::string(file_names::temporary_prefix) + hex(random_u64()), sharing);
}

Result<bool> Directory::publish(const File& temporary, const std::string& name,
                                bool replace) const {
  const std::string from = temporary.path().substr(temporary.path().rfind('/') + 1);
  const unsigned flags = replace ? 0 : RENAME_NOREPLACE;
  if (renameat2(fd(), from.c_str(), fd(), name.c_str(), flags) == 0) return true;
  int reason = errno;
  if (!replace && reason == EINVAL) {  // a file system without RENAME_NOREPLACE
    reason = linkat(fd(), from.c_str(), fd(), name.c_str(), 0) == 0 ? 0 : errno;
  }
  unlinkat(fd(), from.c_str(), 0);
  if (reason == 0) return true;
  if (!replace && reason == EEXIST) return false;
  return fail_os(path() + "/" + name, "rename a finished temporary file to it", reason);
}

Result<void> Directory::remove_file(const std::string& name) const {
  if (unlinkat(fd(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return fail_os(path() + "/" + name, "remove", errno);
  }
  return {};
}

bool Directory::has(const std::string& name) const noexcept {
  struct stat status {};
  return fstatat(fd(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<std::vector<std::string>> Directory::names(std::string_view prefix) const {
  const int copy = openat(fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return fail_os(path(), "open", errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(copy), closedir);
  if (!stream) {
    close(copy);
    return fail_os(path(), "list", errno);
  }
  std::vector<std::string> found;
  while (const dirent* entry = readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || !name.starts_with(prefix)) continue;
    found.emplace_back(name);
  }
  return found;
}

Result<void> Directory::sync() const {
  if (fsync(fd()) != 0) return fail_os(path(), "fsync", errno);
  return {};
}

void Directory::sweep_temporaries() const noexcept {
  auto found = names();
  if (!found) return;
  for (const std::string& name : *found) {
    if (name.starts_with(file_names::temporary_prefix)) unlinkat(fd(), name.c_str(), 0);
  }
}

}  // namespace esker::detail
