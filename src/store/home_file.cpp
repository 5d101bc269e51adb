// Invariants
// 1. `esker.conf` only ever appears whole: it is written under a temporary name and renamed.
// 2. Lines that this version does not know stay as they are.
// 3. Nobody but the user, root and the owner of the store decides what happens to a store.
#include "store/home_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "base/random.hpp"
#include "sync/lock_registry.hpp"

namespace esker {

std::uint64_t KeepFree::of(std::uint64_t file_system_bytes) const noexcept {
  constexpr std::uint64_t least = 10ULL << 30;
  switch (kind) {
    case Kind::bytes:
      return value;
    case Kind::percent:
      return file_system_bytes / 100 * (value < 100 ? value : 100);
    case Kind::automatic:
      break;
  }
  const std::uint64_t share = file_system_bytes / 10;
  const std::uint64_t wanted = share > least ? share : least;
  return wanted < file_system_bytes / 2 ? wanted : file_system_bytes / 2;
}

namespace detail {

namespace {

constexpr std::size_t most_bytes = 65'536;
constexpr std::string_view budget_key = "budget";
constexpr std::string_view keep_free_key = "keep_free";
constexpr std::uint32_t settings_wait_ms = 1000;

using Lines = std::vector<std::string>;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// "" for a comment, an empty line, and what is no `key=value`.
std::string_view key_of(std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos || trimmed(line).starts_with('#')) return {};
  return trimmed(line.substr(0, equals));
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

bool read_budget(std::string_view text, HomeSettings& out) {
  if (text != "none" && !number(text)) return false;
  out.budget_bytes = number(text);
  return true;
}

bool read_keep_free(std::string_view text, HomeSettings& out) {
  const bool percent = text.ends_with('%');
  const auto value = number(percent ? text.substr(0, text.size() - 1) : text);
  if (text == "default") {
    out.keep_free = {};
    return true;
  }
  if (!value || (percent && *value > 100)) return false;
  out.keep_free = {percent ? KeepFree::Kind::percent : KeepFree::Kind::bytes, *value};
  return true;
}

Result<HomeSettings> parse(const Lines& lines, const std::string& path) {
  HomeSettings settings;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view key = key_of(lines[i]);
    const std::string_view value = trimmed(
        std::string_view(lines[i]).substr(key.empty() ? lines[i].size() : lines[i].find('=') + 1));
    const bool good = key == budget_key      ? read_budget(value, settings)
                      : key == keep_free_key ? read_keep_free(value, settings)
                                             : true;
    if (good) continue;
    return fail_field(Errc::corrupt, path,
                      "line " + std::to_string(i + 1) + ", " + std::string(key), std::string(value),
                      key == budget_key ? "a number of bytes, or none"
                                        : "a number of bytes, a share such as 10%, or default",
                      "correct the line, or remove it");
  }
  return settings;
}

Result<Lines> lines_of(const File& file) {
  auto status = file.status();
  if (!status) return failure_of(status);
  if (status->st_size > static_cast<off_t>(most_bytes)) {
    return fail_field(Errc::corrupt, file.path(), "file size", std::to_string(status->st_size),
                      "at most " + std::to_string(most_bytes), "`esker config` writes it");
  }
  std::string text(static_cast<std::size_t>(status->st_size), '\0');
  if (auto done = file.read_at(0, std::as_writable_bytes(std::span(text))); !done) {
    return failure_of(done);
  }
  Lines lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// The file, or an invalid one where there is none that counts.
Result<File> open_settings(const Directory& home, uid_t owner) {
  auto file = File::open_at(home.fd(), home.path(), home_names::settings, O_RDONLY);
  if (!file) {
    const int reason = file.error().os_error;
    if (reason == ENOENT || reason == EACCES || reason == ELOOP) return File();
    return file;
  }
  auto status = file->status();
  if (!status) return failure_of(status);
  const bool trusted =
      status->st_uid == geteuid() || status->st_uid == 0 || status->st_uid == owner;
  if (!trusted || (status->st_mode & 0022) != 0) return File();
  return file;
}

std::string text_of(const KeepFree& keep_free) {
  if (keep_free.kind == KeepFree::Kind::automatic) return "default";
  return std::to_string(keep_free.value) + (keep_free.kind == KeepFree::Kind::percent ? "%" : "");
}

/// Changes the value of a key where it stands, or appends it.
void put(Lines& lines, std::string_view key, const std::string& value) {
  std::string line = std::string(key) + "=" + value;
  bool placed = false;
  for (std::string& old : lines) {
    if (key_of(old) != key) continue;
    old = line;
    placed = true;
  }
  if (!placed) lines.push_back(std::move(line));
}

Result<void> replace_settings(const Directory& home, const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  if (text.size() > most_bytes) {
    return fail(Errc::invalid, home.path() + "/" + home_names::settings + ": it has become " +
                                   std::to_string(text.size()) + " bytes, at most " +
                                   std::to_string(most_bytes) + " are read; shorten it");
  }
  const std::string name = std::string(file_names::temporary_prefix) + hex(random_u64());
  auto file = File::open_at(home.fd(), home.path(), name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (!file) return failure_of(file);
  auto written = file->write_at(0, std::as_bytes(std::span(text)));
  if (written && fchmod(file->fd(), 0600) != 0) written = fail_os(file->path(), "chmod", errno);
  if (written) written = file->sync();
  if (!written) {
    unlinkat(home.fd(), name.c_str(), 0);
    return written;
  }
  auto named = home.publish(*file, home_names::settings, true);
  if (!named) return failure_of(named);
  return home.sync();
}

Result<void> write_settings(const std::string& path, const HomeSettings& settings) {
  if (settings.keep_free.kind == KeepFree::Kind::percent && settings.keep_free.value > 100) {
    return fail(Errc::invalid,
                path + ": keep_free is " + text_of(settings.keep_free) + ", allowed is 0%…100%");
  }
  auto home = Directory::create(path, Sharing::owner);
  if (!home) return failure_of(home);
  auto lock = lock_home(*home, settings_wait_ms);
  if (!lock) return failure_of(lock);
  auto old = File::open_at(home->fd(), home->path(), home_names::settings, O_RDONLY);
  Lines lines;
  if (old) {
    auto read = lines_of(*old);
    if (!read) return failure_of(read);
    lines = std::move(*read);
  } else if (old.error().os_error != ENOENT) {
    return failure_of(old);
  }
  put(lines, budget_key,
      settings.budget_bytes ? std::to_string(*settings.budget_bytes) : std::string("none"));
  put(lines, keep_free_key, text_of(settings.keep_free));
  return replace_settings(*home, lines);
}

}  // namespace

Result<HomeSettings> read_settings(const Directory& home, uid_t owner) {
  auto file = open_settings(home, owner);
  if (!file) return failure_of(file);
  if (!file->valid()) return HomeSettings{};
  auto lines = lines_of(*file);
  if (!lines) return failure_of(lines);
  return parse(*lines, file->path());
}

Result<LockFile> lock_home(const Directory& home, std::uint32_t deadline_ms) {
  auto file = [&]() -> Result<File> {
    const lock_registry::Guard guard;
    auto opened = File::open_at(home.fd(), home.path(), home_names::lock, O_RDWR | O_CREAT, 0600);
    if (!opened) return opened;
    if (auto done = lock_registry::adopt(*opened, guard); !done) return failure_of(done);
    return opened;
  }();
  if (!file) return failure_of(file);
  LockFile lock = LockFile::over(std::move(*file));
  if (!lock.lock(0, deadline_ms)) {
    return fail(Errc::busy, home.path() + "/" + home_names::lock +
                                ": another process is just looking after this home");
  }
  return lock;
}

}  // namespace detail

Result<HomeSettings> read_home(const std::string& home) {
  return detail::guarded([&]() -> Result<HomeSettings> {
    auto directory = detail::Directory::open(home);
    if (!directory && directory.error().code == Errc::missing) return HomeSettings{};
    if (!directory) return detail::failure_of(directory);
    return detail::read_settings(*directory, geteuid());
  });
}

Result<void> write_home(const std::string& home, const HomeSettings& settings) {
  return detail::guarded([&] { return detail::write_settings(home, settings); });
}

}  // namespace esker
