#include "import_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <esker/session.hpp>
#include <string>
#include <utility>

#include "describe.hpp"
#include "session_operand.hpp"

namespace esker::cli {

namespace {

tl::unexpected<Error> invalid(std::string message) {
  return tl::make_unexpected(Error{Errc::invalid, 0, std::move(message)});
}

Result<SessionMetadata> parse_entries(const std::vector<std::string>& entries) {
  SessionMetadata metadata;
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      return invalid(fmt::format("--set {}: expected key=value, for instance user=7", entry));
    }
    const std::string key = entry.substr(0, equals);
    if (!metadata.emplace(key, entry.substr(equals + 1)).second) {
      return invalid(fmt::format("--set: the key {} is given twice", key));
    }
  }
  return metadata;
}

/// Whether there is a session to go on with. One that cannot be continued is an error.
Result<bool> can_continue(const Store& store, Namespace name_space, const std::string& name) {
  const auto info = Session::describe(store, name);
  if (!info && info.error().code == Errc::missing) return false;
  if (!info) return tl::make_unexpected(info.error());
  const char* way_out = "`esker session rm` forgets it";
  if (!info->damage.empty()) {
    return tl::make_unexpected(
        Error{Errc::corrupt, 0,
              fmt::format("session {} is damaged: {}; {}", quoted(name), info->damage, way_out)});
  }
  if (info->expired) {
    return tl::make_unexpected(
        Error{Errc::missing, 0,
              fmt::format("the time to live of session {} is over; {}", quoted(name), way_out)});
  }
  if (!name_space.empty() && name_space != info->name_space) {
    return invalid(fmt::format("session {} belongs to the namespace \"{}\", not to \"{}\"",
                               quoted(name), namespace_text(info->name_space),
                               namespace_text(std::string(name_space))));
  }
  return true;
}

Result<Session> start(Store& store, Namespace name_space, const SessionChange& change,
                      SessionMetadata metadata) {
  std::erase_if(metadata, [](const auto& entry) { return entry.second.empty(); });
  SessionOptions options;
  options.name_space = name_space;
  options.metadata = std::move(metadata);
  options.priority = change.priority.value_or(0);
  options.time_to_live_s = change.time_to_live_s.value_or(0);
  return Session::create(store, change.name, options);
}

Result<Session> resume(Store& store, const SessionChange& change, const SessionMetadata& metadata) {
  auto session = Session::resume(store, change.name);
  if (!session) return session;
  for (const auto& [key, value] : metadata) {
    if (const auto set = session->set(key, value); !set) return tl::make_unexpected(set.error());
  }
  if (change.priority) session->set_priority(*change.priority);
  if (change.time_to_live_s) session->set_time_to_live(*change.time_to_live_s);
  return session;
}

/// Leaves the leading tokens that are reusable and that the file has too; returns how many the
/// two had in common.
Result<std::uint32_t> keep_common(Session& session, Tokens tokens) {
  const Tokens before = session.token_ids();
  const auto differs =
      std::mismatch(before.begin(), before.end(), tokens.begin(), tokens.end()).first;
  const auto common = static_cast<std::uint32_t>(differs - before.begin());
  const std::uint32_t left = std::min(common, session.reusable());
  if (left < session.tokens()) {
    if (const auto cut = session.truncate(left); !cut) return tl::make_unexpected(cut.error());
  }
  return common;
}

Result<Written> append_rest(Session& session, const llama::SeqFile& file,
                            const Progress& progress) {
  const Tokens rest = file.tokens().subspan(session.tokens());
  Written written;
  if (!rest.empty()) {
    auto reservation = session.append(rest);
    if (!reservation) return tl::make_unexpected(reservation.error());
    const auto done = write_missing(file, session.geometry(), *reservation, progress);
    if (!done) return done;
    const auto published = std::move(*reservation).publish();
    if (!published) return tl::make_unexpected(published.error());
    written = *done;
  }
  if (const auto saved = session.save(); !saved) return tl::make_unexpected(saved.error());
  return written;
}

Result<ImportedSession> fill(Session& session, const llama::SeqFile& file,
                             const Progress& progress) {
  ImportedSession imported;
  const auto common = keep_common(session, file.tokens());
  if (!common) return tl::make_unexpected(common.error());
  const auto written = append_rest(session, file, progress);
  if (!written) return tl::make_unexpected(written.error());
  auto info = session.info();
  if (!info) return tl::make_unexpected(info.error());
  imported.common_tokens = *common;
  imported.written = *written;
  imported.info = std::move(*info);
  return imported;
}

/// The session to fill, and whether it is a new one. Another process may make it first.
Result<std::pair<Session, bool>> open_session(Store& store, Namespace name_space,
                                              const SessionChange& change) {
  const auto metadata = parse_entries(change.entries);
  if (!metadata) return tl::make_unexpected(metadata.error());
  auto continues = can_continue(store, name_space, change.name);
  if (!continues) return tl::make_unexpected(continues.error());
  if (!*continues) {
    auto made = start(store, name_space, change, *metadata);
    if (made) return std::pair(std::move(*made), true);
    continues = can_continue(store, name_space, change.name);
    if (!continues || !*continues) return tl::make_unexpected(made.error());
  }
  auto session = resume(store, change, *metadata);
  if (!session) return tl::make_unexpected(session.error());
  return std::pair(std::move(*session), false);
}

/// Removes a session that was made for nothing, unless another process has saved it since. If it
/// cannot be removed, the error that led here still says more.
void forget_unused(Store& store, const std::string& name) {
  const auto info = Session::describe(store, name);
  if (!info || info->tokens != 0 || info->revision > 1) return;
  const std::array<std::string, 1> names{name};
  static_cast<void>(Session::remove(store, names));
}

}  // namespace

Result<ImportedSession> import_session(const llama::SeqFile& file, Store& store,
                                       Namespace name_space, const SessionChange& change,
                                       const Progress& progress) {
  auto opened = open_session(store, name_space, change);
  if (!opened) return tl::make_unexpected(opened.error());
  const bool is_new = opened->second;
  auto imported = fill(opened->first, file, progress);
  if (imported) {
    imported->is_new = is_new;
  } else if (is_new) {
    forget_unused(store, change.name);
  }
  return imported;
}

}  // namespace esker::cli
