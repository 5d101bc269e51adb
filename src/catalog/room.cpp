// Invariants
// 1. Only files whose names Esker gives are removed, and of a session that cannot be read, none.
// 2. A part that its session file names is never removed before the session file.
#include "catalog/room.hpp"

#include <fcntl.h>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "catalog/file_names.hpp"
#include "catalog/load.hpp"

namespace esker::detail {

namespace {

/// What the session file of a stem names; nothing when the file is there, but cannot be read.
struct Wanted {
  std::uint64_t token_suffix = 0;
  std::uint64_t state_suffix = 0;
};

std::optional<Wanted> wanted_parts(const SessionArea& area, std::string_view stem) {
  if (!area.directory.has(session_file_name(stem))) return Wanted{};
  const auto name = decode_session_name(stem);
  if (!name) return std::nullopt;
  auto session = load_session(area, *name);
  if (!session) return std::nullopt;
  return Wanted{session->content.token_suffix, session->content.state_suffix};
}

bool is_wanted(const SessionFileName& part, const Wanted& wanted) {
  const bool tokens = part.kind == SessionFileName::Kind::tokens;
  const std::uint64_t suffix = tokens ? wanted.token_suffix : wanted.state_suffix;
  return suffix != 0 && part.suffix == suffix;
}

bool is_part(const SessionFileName& file) {
  return file.kind == SessionFileName::Kind::tokens || file.kind == SessionFileName::Kind::state;
}

}  // namespace

Result<std::uint64_t> used_disk_bytes(const SessionArea& area) {
  if (area.directory.fd() < 0) return std::uint64_t{0};
  auto files = area.directory.names();
  if (!files) return tl::make_unexpected(std::move(files).error());
  std::uint64_t used = 0;
  std::set<std::pair<dev_t, ino_t>> counted;
  for (const std::string& file : *files) {
    struct stat status {};
    if (fstatat(area.directory.fd(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    if (status.st_nlink > 1 && !counted.emplace(status.st_dev, status.st_ino).second) continue;
    const std::uint64_t bytes = disk_bytes_of(status);
    used = bytes > UINT64_MAX - used ? UINT64_MAX : used + bytes;
  }
  return used;
}

Result<void> check_room(const SessionArea& area, std::int64_t growth, std::string_view path) {
  if (growth <= 0) return {};
  auto used = used_disk_bytes(area);
  if (!used) return tl::make_unexpected(std::move(used).error());
  const auto wanted = static_cast<std::uint64_t>(growth);
  const std::uint64_t share = area.place.share_bytes;
  if (wanted <= share && *used <= share - wanted) return {};
  return fail(Errc::full, std::string(path) + ": this takes " + size_text(wanted) +
                              " more, but sessions use " + size_text(*used) + " of the " +
                              size_text(share) +
                              " that are set aside for them; remove some with `esker session rm`");
}

Result<void> require_room(const SessionArea& area, std::int64_t growth, std::string_view path) {
  if (auto fits = check_room(area, growth, path); fits || fits.error().code != Errc::full) {
    return fits;
  }
  sweep_parts(area);
  return check_room(area, growth, path);
}

void remove_stale_parts(const SessionArea& area, std::string_view stem, std::uint64_t token_suffix,
                        std::uint64_t state_suffix) {
  auto files = area.directory.names(std::string(stem) + ".");
  if (!files) return;
  for (const std::string& file : *files) {
    const SessionFileName part = parse_file_name(file);
    if (!is_part(part) || is_wanted(part, {token_suffix, state_suffix})) continue;
    static_cast<void>(area.directory.remove_file(file));
  }
}

void sweep_parts(const SessionArea& area) {
  auto files = area.directory.names();
  if (!files) return;
  std::map<std::string, std::optional<Wanted>, std::less<>> owners;
  for (const std::string& file : *files) {
    const SessionFileName part = parse_file_name(file);
    if (part.kind == SessionFileName::Kind::temporary) {
      static_cast<void>(area.directory.remove_file(file));
    }
    if (!is_part(part)) continue;
    auto owner = owners.find(part.stem);
    if (owner == owners.end()) {
      owner = owners.emplace(part.stem, wanted_parts(area, part.stem)).first;
    }
    if (!owner->second || is_wanted(part, *owner->second)) continue;
    static_cast<void>(area.directory.remove_file(file));
  }
}

}  // namespace esker::detail
