#include "llama/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

namespace esker::cli::llama {

namespace {

Error refused(const std::string& name, std::string_view what, int error) {
  return Error{Errc::io, error, fmt::format("{}: {}: {}", name, what, std::strerror(error))};
}

Error unsuitable(const std::string& name, std::string_view what) {
  return Error{Errc::invalid, 0, fmt::format("{}: {}", name, what)};
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string random_name(const std::string& directory) {
  std::random_device device;
  return fmt::format("{}/.esker-export-{:08x}{:08x}", directory, device(), device());
}

/// The file that `path` leads to, so that replacing a symbolic link replaces what it points at.
std::string resolved(const std::string& path) {
  char buffer[PATH_MAX];
  return ::realpath(path.c_str(), buffer) != nullptr ? std::string(buffer) : path;
}

/// Free bytes, when the file lies in memory.
std::optional<std::uint64_t> tmpfs_room(int fd) {
  constexpr long tmpfs_magic = 0x01021994;
  struct statfs status {};
  if (::fstatfs(fd, &status) != 0 || status.f_type != tmpfs_magic) return std::nullopt;
  if (status.f_blocks == 0) return UINT64_MAX;  // mounted without a limit
  return std::uint64_t{status.f_bavail} * static_cast<std::uint64_t>(status.f_bsize);
}

Result<UniqueFd> open_stream(UniqueFd fd, const std::string& name) {
  if (fd.get() < 0) return tl::unexpected(refused(name, "cannot write", errno));
  if (::isatty(fd.get()) == 1) {
    return tl::unexpected(unsuitable(name, "is a terminal: binary data needs a file or a pipe"));
  }
  return fd;
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path, bool force) {
  OutputFile file;
  file.name_ = path == "-" ? "standard output" : path;
  file.path_ = path;
  file.force_ = force;
  struct stat status {};
  const bool exists = path != "-" && ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    return tl::unexpected(unsuitable(path, "is a directory, expected a file name"));
  }
  if (path == "-" || (exists && !S_ISREG(status.st_mode))) {
    const int fd = path == "-" ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                               : ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    auto stream = open_stream(UniqueFd(fd), file.name_);
    if (!stream) return tl::unexpected(stream.error());
    file.fd_ = std::move(*stream);
    return file;
  }
  if (exists && !force) {
    return tl::unexpected(
        unsuitable(path, "exists already: give another name, or -f to replace it"));
  }
  if (exists) file.path_ = resolved(path);
  file.directory_ = directory_of(file.path_);
  const auto opened = file.open_temporary(exists ? status.st_mode & 07777U : 0600U);
  if (!opened) return tl::unexpected(opened.error());
  return file;
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::swap(OutputFile& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(name_, other.name_);
  std::swap(directory_, other.directory_);
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(force_, other.force_);
}

Result<void> OutputFile::open_temporary(unsigned mode) {
  fd_ = UniqueFd(::open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd_.get() < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    temporary_ = random_name(directory_);
    const int fd = ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) temporary_.clear();
    fd_ = UniqueFd(fd);
  }
  if (fd_.get() < 0) return tl::unexpected(refused(name_, "cannot create", errno));
  if (::fchmod(fd_.get(), mode) != 0) return tl::unexpected(refused(name_, "chmod", errno));
  return {};
}

Result<void> OutputFile::reserve(std::uint64_t bytes) {
  if (directory_.empty() || bytes == 0) return {};
  if (const auto free_bytes = tmpfs_room(fd_.get())) {
    // Memory that is taken ahead is touched twice: there the writing itself is the cheaper test.
    if (*free_bytes >= bytes) return {};
    return tl::unexpected(refused(name_, fmt::format("no room for {} bytes", bytes), ENOSPC));
  }
  if (::fallocate(fd_.get(), 0, 0, static_cast<off_t>(bytes)) == 0) return {};
  if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG) return {};  // it can only help
  return tl::unexpected(refused(name_, fmt::format("no room for {} bytes", bytes), errno));
}

Result<void> OutputFile::restart() {
  if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) != 0) {
    return tl::unexpected(refused(name_, "cannot begin again", errno));
  }
  return {};
}

Result<void> OutputFile::name_temporary() {
  if (!temporary_.empty()) return {};
  const std::string by_fd = fmt::format("/proc/self/fd/{}", fd_.get());
  std::string name = random_name(directory_);
  if (::linkat(AT_FDCWD, by_fd.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return tl::unexpected(refused(name_, "cannot name the new file", errno));
  }
  temporary_ = std::move(name);
  return {};
}

Result<void> OutputFile::publish() {
  const unsigned flags = force_ ? 0U : RENAME_NOREPLACE;
  int done = ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), flags);
  // Some file systems know no flags: there a hard link refuses to replace just as well.
  if (done != 0 && errno == EINVAL && !force_) {
    done = ::link(temporary_.c_str(), path_.c_str());
    if (done == 0) ::unlink(temporary_.c_str());
  }
  if (done != 0 && errno == EEXIST) {
    return tl::unexpected(unsuitable(name_, "appeared meanwhile: give another name, or -f"));
  }
  if (done != 0) return tl::unexpected(refused(name_, "cannot rename", errno));
  temporary_.clear();
  return {};
}

Result<void> OutputFile::commit() {
  if (directory_.empty()) return {};
  if (::fsync(fd_.get()) != 0) return tl::unexpected(refused(name_, "fsync", errno));
  auto done = name_temporary();
  if (done) done = publish();
  if (!done) return done;
  const UniqueFd directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || ::fsync(directory.get()) != 0) {
    return tl::unexpected(refused(directory_, "fsync", errno));
  }
  return {};
}

}  // namespace esker::cli::llama
