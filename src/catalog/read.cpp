// Invariants
// 1. Nothing is changed here, and no lock is needed: files appear and disappear whole.
#include <fcntl.h>
#include <algorithm>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "catalog/area.hpp"
#include "catalog/file_names.hpp"
#include "catalog/load.hpp"
#include "catalog/room.hpp"

namespace esker::detail {

namespace {

std::uint64_t modified_unix_ns(const struct stat& status) noexcept {
  if (status.st_mtim.tv_sec < 0) return 0;
  constexpr std::uint64_t latest_s = UINT64_MAX / 1'000'000'000 - 1;
  const auto seconds = std::min(static_cast<std::uint64_t>(status.st_mtim.tv_sec), latest_s);
  return seconds * 1'000'000'000 + static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
}

/// A directory that a killed creator has made, but not yet given its mode, gets it now.
Result<void> finish_directory(const Directory& directory, Sharing sharing) {
  auto allowed = directory.check_permissions(sharing);
  if (allowed || sharing != Sharing::group) return allowed;
  struct stat status {};
  if (fstat(directory.fd(), &status) != 0 || (status.st_mode & 07777) != 0700) return allowed;
  if (fchmod(directory.fd(), 02770) != 0) return allowed;
  return directory.check_permissions(sharing);
}

}  // namespace

SessionFiles::SessionFiles() noexcept = default;

SessionFiles::SessionFiles(Directory directory, const Place& place) noexcept
    : directory_(std::move(directory)), place_(place) {}

Result<SessionFiles> SessionFiles::open(const Directory& store, const Place& place, bool create) {
  return guarded([&]() -> Result<SessionFiles> {
    struct stat status {};
    const bool there = fstatat(store.fd(), file_names::sessions, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there && !create) return SessionFiles({}, place);
    if (there && !S_ISDIR(status.st_mode)) {
      return fail_field(Errc::corrupt, store.path() + "/" + file_names::sessions, "file type",
                        "no directory", "a directory", "remove it");
    }
    auto directory = create ? Directory::create_below(store, file_names::sessions, place.sharing)
                            : Directory::open_below(store, file_names::sessions);
    if (!directory) return tl::make_unexpected(std::move(directory).error());
    auto allowed = create ? finish_directory(*directory, place.sharing)
                          : directory->check_permissions(place.sharing);
    if (allowed && !there) allowed = store.sync();
    if (!allowed) return tl::make_unexpected(std::move(allowed).error());
    return SessionFiles(std::move(*directory), place);
  });
}

Result<std::vector<std::string>> SessionFiles::names() const {
  return guarded([&]() -> Result<std::vector<std::string>> {
    std::vector<std::string> sessions;
    if (directory_.fd() < 0) return sessions;
    auto files = directory_.names();
    if (!files) return files;
    for (const std::string& file : *files) {
      if (parse_file_name(file).kind == SessionFileName::Kind::session) {
        sessions.push_back(listed_name(file));
      }
    }
    std::sort(sessions.begin(), sessions.end());
    return sessions;
  });
}

bool SessionFiles::has(std::string_view name) const noexcept {
  return guarded([&]() -> Result<bool> {
           return directory_.fd() >= 0 && check_session_name(name) &&
                  directory_.has(session_file_name(encode_session_name(name)));
         })
      .value_or(false);
}

Result<std::vector<std::string>> SessionFiles::file_list() const {
  return guarded([&]() -> Result<std::vector<std::string>> {
    if (directory_.fd() < 0) return std::vector<std::string>{};
    auto files = directory_.names();
    if (files) std::sort(files->begin(), files->end());
    return files;
  });
}

Result<bool> SessionFiles::is_kept(std::string_view name) const {
  return guarded([&]() -> Result<bool> {
    auto session = load_session({directory_, place_}, name);
    if (!session) return tl::make_unexpected(std::move(session).error());
    return session->content.kept;
  });
}

Result<SessionRecord> SessionFiles::read(std::string_view name) const {
  return guarded([&]() -> Result<SessionRecord> {
    const SessionArea area{directory_, place_};
    auto whole = load_whole(area, name);
    if (!whole) return tl::make_unexpected(std::move(whole).error());
    SessionContent& content = whole->session.content;
    SessionRecord record;
    record.tokens = whole->tokens();
    record.file_bytes =
        static_cast<std::uint64_t>(whole->session.status.st_size) + whole->token_file.file_bytes;
    record.name = std::move(content.name);
    record.name_space = std::move(content.name_space);
    record.metadata = std::move(content.metadata);
    record.priority = content.priority;
    record.time_to_live_s = content.time_to_live_s;
    record.created_unix_ns = content.created_unix_ns;
    record.revision = content.revision;
    record.kept = content.kept;
    record.keep_max_bytes = content.keep_max_bytes;
    record.dropped_paths = std::move(content.dropped_paths);
    record.used_unix_ns = modified_unix_ns(whole->session.status);
    return record;
  });
}

Result<std::uint64_t> SessionFiles::used_bytes() const {
  return guarded([&]() -> Result<std::uint64_t> { return used_disk_bytes({directory_, place_}); });
}

}  // namespace esker::detail
