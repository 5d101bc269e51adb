#include "llama/byte_sink.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace esker::cli::llama {

namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

}  // namespace

ByteSink::ByteSink(int fd, std::string name) : fd_(fd), name_(std::move(name)) {
  buffer_.reserve(buffer_bytes);
}

Result<void> ByteSink::put(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  if (buffer_.size() + bytes.size() > buffer_bytes) {
    const auto flushed = flush();
    if (!flushed) return flushed;
  }
  if (bytes.size() > buffer_bytes) return write_all(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return {};
}

Result<void> ByteSink::put_u32(std::uint32_t value) {
  return put(std::as_bytes(std::span(&value, 1)));
}

Result<void> ByteSink::put_u64(std::uint64_t value) {
  return put(std::as_bytes(std::span(&value, 1)));
}

Result<void> ByteSink::flush() {
  const auto written = write_all(buffer_);
  buffer_.clear();
  return written;
}

Result<void> ByteSink::skip(std::uint64_t bytes) {
  auto flushed = flush();
  if (!flushed) return flushed;
  bytes_ += bytes;
  if (::lseek(fd_, static_cast<off_t>(bytes), SEEK_CUR) >= 0) return {};
  const int error = errno;
  return tl::unexpected(
      Error{Errc::io, error, fmt::format("{}: cannot seek: {}", name_, std::strerror(error))});
}

Result<void> ByteSink::write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      return tl::unexpected(
          Error{Errc::io, error, fmt::format("{}: cannot write: {}", name_, std::strerror(error))});
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace esker::cli::llama
