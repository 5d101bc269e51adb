// Invariants
// 1. Of a file, a length is compared with the file's before memory is taken for it.
// 2. Of a stream, memory is at most twice what has arrived, and one step more.
#include "archive/byte_source.hpp"

#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.hpp"

namespace esker::detail {

namespace {

constexpr std::size_t step_bytes = std::size_t{1} << 20;

}  // namespace

Result<ByteSource> ByteSource::of_file(File file) {
  auto status = file.status();
  if (!status) return failure_of(status);
  if (!S_ISREG(status->st_mode)) {
    return fail_field(Errc::invalid, file.path(), "file type", "not a regular file",
                      "a regular file", "read it as a stream");
  }
  ByteSource source;
  source.label_ = file.path();
  source.file_bytes_ = static_cast<std::uint64_t>(status->st_size);
  source.file_ = std::move(file);
  return source;
}

ByteSource ByteSource::of_stream(int fd, std::string label) {
  ByteSource source;
  source.fd_ = fd;
  source.label_ = std::move(label);
  return source;
}

Result<void> ByteSource::within(std::uint64_t count, std::string_view what) const {
  if (!seekable()) return {};
  const std::uint64_t left = position_ < file_bytes_ ? file_bytes_ - position_ : 0;
  if (count <= left) return {};
  return fail_field(Errc::corrupt, label_, "size", std::to_string(file_bytes_),
                    "more: " + std::string(what) + " has " + std::to_string(count) +
                        " bytes from offset " + std::to_string(position_),
                    "the file is cut off or damaged: get it anew");
}

Result<std::size_t> ByteSource::some(std::span<std::byte> bytes) {
  for (;;) {
    const ssize_t got =
        seekable() ? pread(file_.fd(), bytes.data(), bytes.size(), static_cast<off_t>(position_))
                   : ::read(fd_, bytes.data(), bytes.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    if (!seekable() && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      pollfd wait{fd_, POLLIN, 0};
      poll(&wait, 1, -1);
      continue;
    }
    return fail_os(label_, "read", errno);
  }
}

Result<void> ByteSource::read(std::span<std::byte> bytes, std::string_view what) {
  if (auto ok = within(bytes.size(), what); !ok) return ok;
  while (!bytes.empty()) {
    auto got = some(bytes);
    if (!got) return failure_of(got);
    if (*got == 0) {
      return fail_field(
          Errc::corrupt, label_, "end", "at byte " + std::to_string(position_),
          "later: " + std::string(what) + " lacks " + std::to_string(bytes.size()) + " bytes",
          "it is cut off: get it anew");
    }
    position_ += *got;
    bytes = bytes.subspan(*got);
  }
  return {};
}

Result<void> ByteSource::read(std::vector<std::byte>& bytes, std::uint64_t count,
                              std::string_view what) {
  if (auto ok = within(count, what); !ok) return ok;
  if (seekable() || count <= std::max(step_bytes, bytes.capacity())) {
    bytes.resize(static_cast<std::size_t>(count));
    return read(std::span(bytes), what);
  }
  bytes.clear();
  while (bytes.size() < count) {
    const std::size_t begin = bytes.size();
    const std::uint64_t now = std::min<std::uint64_t>(count - begin, std::max(begin, step_bytes));
    bytes.resize(begin + static_cast<std::size_t>(now));
    if (auto ok = read(std::span(bytes).subspan(begin), what); !ok) return ok;
  }
  return {};
}

Result<void> ByteSource::skip(std::uint64_t bytes, std::string_view what) {
  if (seekable()) {
    auto ok = within(bytes, what);
    if (ok) position_ += bytes;
    return ok;
  }
  std::vector<std::byte> scratch(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, 65'536)));
  while (bytes > 0) {
    const std::size_t now =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes, scratch.size()));
    if (auto ok = read(std::span(scratch).first(now), what); !ok) return ok;
    bytes -= now;
  }
  return {};
}

Result<void> ByteSource::expect_end() {
  std::array<std::byte, 1> more{};
  auto got = some(more);
  if (!got) return failure_of(got);
  if (*got == 0) return {};
  return fail_field(Errc::corrupt, label_, "what follows the end frame", "not nothing",
                    "the end of the file at byte " + std::to_string(position_));
}

}  // namespace esker::detail
