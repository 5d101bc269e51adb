#include "llama/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "llama/layout.hpp"

namespace esker::cli::llama {

namespace {

tl::unexpected<Error> refused(const std::string& name, const char* what, int error) {
  return tl::unexpected(
      Error{Errc::io, error, fmt::format("{}: {}: {}", name, what, std::strerror(error))});
}

tl::unexpected<Error> unsuitable(const std::string& name, std::string_view what) {
  return tl::unexpected(Error{Errc::invalid, 0, fmt::format("{}: {}", name, what)});
}

std::uint64_t half_of_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return std::uint64_t{1} << 30;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes) / 2;
}

Result<void> append(int fd, const std::string& name, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refused(name, "cannot keep what comes from the pipe in memory", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

/// Like one of the kinds of file that are read here.
bool begins_well(std::span<const std::byte> bytes) {
  constexpr std::array<std::uint32_t, 3> magics{sequence_magic, session_magic, gguf_magic};
  return std::any_of(magics.begin(), magics.end(), [bytes](std::uint32_t magic) {
    return std::memcmp(bytes.data(), &magic, std::min(bytes.size(), sizeof magic)) == 0;
  });
}

/// Reads a pipe to its end. Its text may be private, so nothing of it reaches a disk.
Result<UniqueFd> spool(int pipe, const std::string& name) {
  UniqueFd memory(::memfd_create("esker-input", MFD_CLOEXEC));
  if (memory.get() < 0) return refused(name, "memfd_create", errno);
  const std::uint64_t limit = half_of_memory();
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  std::uint64_t total = 0;
  for (;;) {
    const ssize_t n = ::read(pipe, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refused(name, "cannot read", errno);
    if (n == 0) return memory;
    total += static_cast<std::uint64_t>(n);
    if (total > limit) {
      return unsuitable(name, fmt::format("more than {} bytes come from this pipe, half of the "
                                          "machine's memory: write them to a file first",
                                          limit));
    }
    const auto piece = std::span(buffer).first(static_cast<std::size_t>(n));
    const bool first = total == piece.size();
    const auto kept = append(memory.get(), name, piece);
    if (!kept) return tl::unexpected(kept.error());
    // What begins like none may never end: the reader will say what is wrong.
    if (first && !begins_well(piece)) return memory;
  }
}

std::int64_t modified_ns(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

InputFile::InputFile(UniqueFd fd, std::string name, const struct stat& status) noexcept
    : fd_(std::move(fd)),
      name_(std::move(name)),
      bytes_(static_cast<std::uint64_t>(status.st_size)),
      modified_ns_(modified_ns(status)) {}

Result<InputFile> InputFile::open(const std::string& path) {
  if (path == "-") {
    const int fd = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return refused("standard input", "cannot read", errno);
    return adopt(UniqueFd(fd), "standard input");
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused(path, "cannot open", errno);
  return adopt(UniqueFd(fd), path);
}

Result<InputFile> InputFile::adopt(UniqueFd fd, std::string name) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return refused(name, "fstat", errno);
  if (S_ISDIR(status.st_mode)) return unsuitable(name, "is a directory, expected a file");
  if (S_ISREG(status.st_mode)) {
    return InputFile(std::move(fd), std::move(name), status);
  }
  if (::isatty(fd.get()) == 1) {
    return unsuitable(name, "is a terminal: give a file, or pipe one in");
  }
  auto memory = spool(fd.get(), name);
  if (!memory) return tl::unexpected(memory.error());
  if (::fstat(memory->get(), &status) != 0) return refused(name, "fstat", errno);
  return InputFile(std::move(*memory), std::move(name), status);
}

Result<void> InputFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refused(name_, "cannot read", errno);
    if (n == 0) {
      return tl::unexpected(Error{
          Errc::io, 0,
          fmt::format("{}: ends at byte {}, but held {} bytes when it was opened: it was cut while "
                      "it was read. Try again when nothing writes to it",
                      name_, offset, bytes_)});
    }
    out = out.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

Result<void> InputFile::check_unchanged() const {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return refused(name_, "fstat", errno);
  const bool same =
      static_cast<std::uint64_t>(status.st_size) == bytes_ && modified_ns(status) == modified_ns_;
  if (same) return {};
  return tl::unexpected(Error{
      Errc::io, 0,
      fmt::format("{}: someone wrote to it while it was read: found {} bytes, expected {} and "
                  "no newer time. Try again when it is complete",
                  name_, status.st_size, bytes_)});
}

}  // namespace esker::cli::llama
