#include "region/file.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>
#include <array>
#include <cerrno>

#include "base/error.hpp"

namespace esker::detail {

namespace {

constexpr int lowest_descriptor = 64;

Result<void> write_zeros(const File& file, std::uint64_t offset, std::uint64_t bytes) {
  static constexpr std::array<std::byte, 65'536> zeros{};
  while (bytes > 0) {
    const std::size_t now = bytes < zeros.size() ? static_cast<std::size_t>(bytes) : zeros.size();
    if (auto done = file.write_at(offset, std::span(zeros).first(now)); !done) return done;
    offset += now;
    bytes -= now;
  }
  return {};
}

int fallocate_retrying(int fd, int mode, std::uint64_t offset, std::uint64_t bytes) noexcept {
  int rc = 0;
  do {
    rc = fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (rc != 0 && errno == EINTR);
  return rc;
}

}  // namespace

int raise_descriptor(int fd) noexcept {
  if (fd < 0 || fd >= lowest_descriptor) return fd;
  const int raised = fcntl(fd, F_DUPFD_CLOEXEC, lowest_descriptor);
  const int saved = errno;
  close(fd);
  errno = saved;
  return raised;
}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

void File::reset() noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<File> File::open_at(int directory_fd, const std::string& directory_path,
                           const std::string& name, int flags, mode_t mode) {
  std::string path = directory_path + "/" + name;
  const int fd = raise_descriptor(
      openat(directory_fd, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode));
  if (fd < 0) return fail_os(path, "open", errno);
  File file(fd, std::move(path));
  auto status = file.status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  if (!S_ISREG(status->st_mode)) {
    return fail_field(Errc::corrupt, file.path(), "file type", "not a regular file",
                      "a regular file");
  }
  return file;
}

Result<struct stat> File::status() const {
  struct stat status {};
  if (fstat(fd_, &status) != 0) return fail_os(path_, "fstat", errno);
  return status;
}

Result<void> File::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return fail_os(path_, "read", errno);
    }
    if (got == 0) {
      return fail_field(Errc::corrupt, path_, "length", std::to_string(offset),
                        "at least " + std::to_string(offset + bytes.size()),
                        "the file was truncated");
    }
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Result<void> File::write_at(std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0) {
      if (errno == EINTR) continue;
      return fail_os(path_, "write", errno);
    }
    offset += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> File::allocate(std::uint64_t bytes) const {
  if (fallocate_retrying(fd_, 0, 0, bytes) == 0) return {};
  const int reason = errno;
  if (reason == EOPNOTSUPP || reason == EINVAL) {
    auto done = write_zeros(*this, 0, bytes);
    if (!done && ftruncate(fd_, 0) != 0) return fail_os(path_, "truncate", errno);
    return done;
  }
  // ext4 keeps what it could allocate before it ran out of space.
  if (ftruncate(fd_, 0) != 0) return fail_os(path_, "truncate", errno);
  return fail_os(path_, "allocate " + size_text(bytes), reason);
}

Result<void> File::punch(std::uint64_t offset, std::uint64_t bytes) const {
  if (bytes == 0) return {};
  if (fallocate_retrying(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes) == 0) {
    return {};
  }
  if (errno != EOPNOTSUPP) return fail_os(path_, "punch a hole", errno);
  return write_zeros(*this, offset, bytes);
}

Result<void> File::sync() const {
  int rc = 0;
  do {
    rc = fdatasync(fd_);
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) return fail_os(path_, "fdatasync", errno);
  return {};
}

}  // namespace esker::detail
