#include "input_kind.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

namespace esker::cli {

namespace {

constexpr std::size_t magic_bytes = 8;
constexpr std::string_view snapshot_magic = "ESKERSNP";
constexpr std::string_view sequence_magic = "qsgg";  // 0x67677371 as it lies in the file

using Magic = std::array<char, magic_bytes>;

Error refused(const std::string& name, std::string_view what) {
  return Error{Errc::invalid, 0, fmt::format("{}: {}", name, what)};
}

/// What a pipe holds, copied into another one; the original stays. At most `magic.size()` bytes.
std::size_t peek_pipe(int fd, Magic& magic) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return 0;
  const llama::UniqueFd reader(ends[0]);
  const llama::UniqueFd writer(ends[1]);
  ssize_t bytes = 0;
  do {
    bytes = ::tee(fd, writer.get(), magic.size(), 0);
  } while (bytes < 0 && errno == EINTR);
  if (bytes <= 0) return 0;
  const ssize_t read = ::read(reader.get(), magic.data(), static_cast<std::size_t>(bytes));
  return read < 0 ? 0 : static_cast<std::size_t>(read);
}

std::size_t peek_socket(int fd, Magic& magic) {
  const ssize_t bytes = ::recv(fd, magic.data(), magic.size(), MSG_PEEK);
  return bytes < 0 ? 0 : static_cast<std::size_t>(bytes);
}

/// Nothing more will come.
bool is_over(int fd) {
  pollfd input{fd, POLLIN | POLLRDHUP, 0};
  return ::poll(&input, 1, 0) == 1 && (input.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

/// The bytes come in pieces, however small, and are not taken out of the stream.
template <class Peek>
std::size_t peek_stream(int fd, Magic& magic, Peek peek) {
  for (;;) {
    const bool last = is_over(fd);
    const std::size_t bytes = peek(fd, magic);
    if (bytes == magic.size() || bytes == 0 || last) return bytes;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::size_t peek_file(int fd, Magic& magic) {
  const off_t here = ::lseek(fd, 0, SEEK_CUR);
  const ssize_t bytes = ::pread(fd, magic.data(), magic.size(), here < 0 ? 0 : here);
  return bytes < 0 ? 0 : static_cast<std::size_t>(bytes);
}

}  // namespace

Result<llama::UniqueFd> open_input(const std::string& path) {
  const int fd = path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                             : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  const std::string name = path == "-" ? "standard input" : path;
  llama::UniqueFd input(fd);
  struct stat status {};
  if (fd < 0 || ::fstat(fd, &status) != 0) {
    const int error = errno;
    return tl::make_unexpected(
        Error{Errc::io, error, fmt::format("{}: cannot open: {}", name, std::strerror(error))});
  }
  if (S_ISDIR(status.st_mode)) {
    return tl::make_unexpected(refused(name, "is a directory, expected a file"));
  }
  if (::isatty(fd) == 1) {
    return tl::make_unexpected(
        refused(name, "is a terminal: a file or a pipe has to bring binary data"));
  }
  return input;
}

InputKind kind_of(int fd) {
  Magic magic{};
  struct stat status {};
  std::size_t bytes = 0;
  if (::fstat(fd, &status) != 0) return InputKind::unknown;
  if (S_ISREG(status.st_mode)) bytes = peek_file(fd, magic);
  if (S_ISFIFO(status.st_mode)) bytes = peek_stream(fd, magic, peek_pipe);
  if (S_ISSOCK(status.st_mode)) bytes = peek_stream(fd, magic, peek_socket);
  const std::string_view found(magic.data(), bytes);
  if (found == snapshot_magic) return InputKind::snapshot;
  return found.starts_with(sequence_magic) ? InputKind::llama : InputKind::unknown;
}

bool is_snapshot_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const llama::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.get() >= 0 && kind_of(file.get()) == InputKind::snapshot;
}

}  // namespace esker::cli
