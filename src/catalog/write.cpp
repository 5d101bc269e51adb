// Invariants
// 1. The caller holds the SESSIONS lock.
// 2. Room is asked for before the first byte is written.
// 3. The session file goes first when a session is removed: without it the rest is no session.
#include <fcntl.h>
#include <array>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "catalog/area.hpp"
#include "catalog/file_names.hpp"
#include "catalog/load.hpp"
#include "catalog/new_file.hpp"
#include "catalog/records.hpp"
#include "catalog/room.hpp"
#include "catalog/write_plan.hpp"

namespace esker::detail {

namespace {

/// What is there of a session that is written anew.
struct Present {
  std::optional<LoadedSession> session;
  LoadedTokens token_file;
};

bool replaceable(const Error& error) noexcept {
  return error.code == Errc::missing || error.code == Errc::corrupt;
}

Result<Present> find_present(const SessionArea& area, std::string_view name) {
  Present present;
  auto session = load_session(area, name);
  if (!session) {
    if (replaceable(session.error())) return present;
    return tl::make_unexpected(std::move(session).error());
  }
  auto tokens = load_tokens(area, session->content);
  if (!tokens && !replaceable(tokens.error())) {
    return tl::make_unexpected(std::move(tokens).error());
  }
  present.session = std::move(*session);
  if (tokens) present.token_file = std::move(*tokens);
  return present;
}

/// Disk bytes that become free when the plan has been carried out.
std::uint64_t freed_bytes(const Present& present, const WritePlan& plan) {
  if (!present.session) return 0;
  const std::uint64_t token_bytes = plan.uses_source() ? 0 : present.token_file.only_here_bytes;
  return disk_bytes_of(present.session->status) + token_bytes;
}

/// The session file that is listed under this name; nothing when there is none.
Result<std::string> find_session_file(const SessionArea& area, std::string_view name) {
  auto files = area.directory.names();
  if (!files) return tl::make_unexpected(std::move(files).error());
  std::string foreign;
  for (std::string& file : *files) {
    if (parse_file_name(file).kind != SessionFileName::Kind::session) continue;
    if (listed_name(file) != name) continue;
    if (decode_session_name(parse_file_name(file).stem)) return std::move(file);
    foreign = std::move(file);
  }
  return foreign;
}

/// All parts of a stem, whatever they are.
Result<void> remove_parts(const SessionArea& area, std::string_view stem) {
  auto files = area.directory.names(std::string(stem) + ".");
  if (!files) return tl::make_unexpected(std::move(files).error());
  for (const std::string& file : *files) {
    const SessionFileName part = parse_file_name(file);
    const bool known =
        part.kind == SessionFileName::Kind::tokens || part.kind == SessionFileName::Kind::state;
    if (!known || part.stem != stem) continue;
    if (auto done = remove_anything(area, file); !done) return done;
  }
  return {};
}

}  // namespace

SessionContent content_of(const SessionRecord& record) {
  SessionContent content;
  content.name = record.name;
  content.name_space = record.name_space;
  content.metadata = record.metadata;
  content.revision = record.revision;
  content.created_unix_ns = record.created_unix_ns;
  content.keep_max_bytes = record.keep_max_bytes;
  content.dropped_paths = record.dropped_paths;
  content.time_to_live_s = record.time_to_live_s;
  content.priority = record.priority;
  content.kept = record.kept;
  return content;
}

Result<void> require_writable(const SessionArea& area) {
  if (area.directory.fd() >= 0) return {};
  return fail(Errc::invalid, "the sessions of this store were opened for reading only");
}

Result<void> SessionFiles::write(const SessionRecord& record) const {
  return guarded([&]() -> Result<void> {
    const SessionArea area{directory_, place_};
    if (auto ok = require_writable(area); !ok) return ok;
    if (auto ok = check_record(record); !ok) return ok;
    auto present = find_present(area, record.name);
    if (!present) return tl::make_unexpected(std::move(present).error());
    SessionContent content = content_of(record);
    TokenSource source;
    content.state_suffix = fresh_suffix();
    if (present->session) {
      content.state_suffix = present->session->content.state_suffix;
      source = {present->token_file.ids, present->token_file.held,
                present->session->content.token_suffix};
    }
    const WritePlan plan =
        plan_write(std::move(content), record.tokens, source, inline_limit(source), place_.uuid);
    const auto growth = static_cast<std::int64_t>(plan.disk_bytes) -
                        static_cast<std::int64_t>(freed_bytes(*present, plan));
    if (auto ok = require_room(area, growth, directory_.path()); !ok) return ok;
    NewParts parts(area);
    return carry_out(area, plan, parts, {});
  });
}

Result<void> SessionFiles::remove(std::string_view name) const {
  return guarded([&]() -> Result<void> {
    const SessionArea area{directory_, place_};
    if (directory_.fd() < 0) return tl::make_unexpected(load_session(area, name).error());
    auto file = find_session_file(area, name);
    if (!file) return tl::make_unexpected(std::move(file).error());
    if (file->empty()) {
      return fail(Errc::missing, "there is no session \"" + std::string(name) +
                                     "\"; `esker session ls` shows all");
    }
    if (auto done = remove_anything(area, *file); !done) return done;
    if (auto done = directory_.sync(); !done) return done;
    return remove_parts(area, parse_file_name(*file).stem);
  });
}

void SessionFiles::touch(std::string_view name) const noexcept {
  static_cast<void>(guarded([&]() -> Result<void> {
    if (directory_.fd() < 0 || !check_session_name(name)) return {};
    const std::string file = session_file_name(encode_session_name(name));
    const std::array<timespec, 2> now{timespec{0, UTIME_NOW}, timespec{0, UTIME_NOW}};
    // A session whose moment cannot be set grows old a little earlier.
    if (utimensat(directory_.fd(), file.c_str(), now.data(), AT_SYMLINK_NOFOLLOW) != 0) return {};
    return {};
  }));
}

void SessionFiles::sweep() const noexcept {
  static_cast<void>(guarded([&]() -> Result<void> {
    if (directory_.fd() >= 0) sweep_parts({directory_, place_});
    return {};
  }));
}

}  // namespace esker::detail
