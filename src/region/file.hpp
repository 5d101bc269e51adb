#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace esker::detail {

/// A number at or above 64, so that daemons which close or reuse the low descriptors miss it, and
/// close-on-exec. Takes `fd` over; returns -1 with errno when none is left.
int raise_descriptor(int fd) noexcept;

/// Owns a descriptor and knows its path for messages. All calls retry EINTR and short transfers.
class File {
 public:
  File() noexcept = default;
  File(int fd, std::string path) noexcept : fd_(fd), path_(std::move(path)) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}
  File& operator=(File&& other) noexcept;
  ~File() { reset(); }

  /// Opens `name` inside a directory: never through a symbolic link, regular files only.
  [[nodiscard]] static Result<File> open_at(int directory_fd, const std::string& directory_path,
                                            const std::string& name, int flags, mode_t mode = 0);

  [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  void reset() noexcept;

  [[nodiscard]] Result<struct stat> status() const;
  /// Reads exactly `bytes.size()`; an early end of file is `Errc::corrupt`.
  [[nodiscard]] Result<void> read_at(std::uint64_t offset, std::span<std::byte> bytes) const;
  [[nodiscard]] Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) const;
  /// Gives the file `bytes` of real disk blocks; on failure the space is given back at once.
  [[nodiscard]] Result<void> allocate(std::uint64_t bytes) const;
  /// Frees the disk blocks of a range, which then reads as zeros; writes zeros where holes are
  /// unknown.
  [[nodiscard]] Result<void> punch(std::uint64_t offset, std::uint64_t bytes) const;
  [[nodiscard]] Result<void> sync() const;

 private:
  int fd_ = -1;
  std::string path_;
};

}  // namespace esker::detail
