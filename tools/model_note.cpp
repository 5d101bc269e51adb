#include "model_note.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace esker::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_bytes = 4096;

std::string note_path(const StorePlace& place) { return place.path + "/model_file"; }

}  // namespace

void note_model_file(const StorePlace& place, const std::string& model_file, bool group) {
  std::error_code error;
  const std::string line = fs::absolute(model_file, error).lexically_normal().string() + '\n';
  if (error || line.size() > most_bytes) return;
  const mode_t mode = group ? 0660 : 0600;
  const int fd =
      ::open(note_path(place).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) return;
  const ssize_t written = ::write(fd, line.data(), line.size());
  const bool whole = written == static_cast<ssize_t>(line.size());
  if (::fchmod(fd, mode) != 0 || !whole) ::unlink(note_path(place).c_str());
  ::close(fd);
}

std::string noted_model_file(const StorePlace& place) {
  std::array<char, most_bytes> bytes{};
  const int fd = ::open(note_path(place).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return "";
  const ssize_t got = ::read(fd, bytes.data(), bytes.size());
  ::close(fd);
  if (got <= 0) return "";
  std::string line(bytes.data(), static_cast<std::size_t>(got));
  line.resize(std::min(line.find('\n'), line.size()));
  return line;
}

}  // namespace esker::cli
