#include "session_operand.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "units.hpp"

namespace esker::cli {

namespace {

/// The one of this name, or nullptr.
const SessionInfo* find_in(std::string_view name, std::span<const SessionInfo> sessions) {
  const auto found = std::find_if(sessions.begin(), sessions.end(),
                                  [&](const SessionInfo& session) { return session.name == name; });
  return found == sessions.end() ? nullptr : &*found;
}

Error no_session(std::string_view name, std::span<const SessionInfo> sessions) {
  std::vector<std::string> names;
  for (const SessionInfo& session : sessions) names.push_back(session.name);
  std::string text = fmt::format("there is no session {}", quoted(name));
  if (const std::string_view meant = nearest(name, names); !meant.empty()) {
    text += fmt::format("; did you mean {}?", quoted(meant));
  } else if (names.empty()) {
    text += ": the store has no sessions";
  } else {
    text += "; `esker session ls STORE` lists those that are there";
  }
  return {Errc::missing, 0, std::move(text)};
}

/// Says more of an `Errc::missing`: which name may have been meant. One whose time to live is over
/// is there all the same, and its error says so.
Error explained(const Store& store, std::string_view name, Error error) {
  if (error.code != Errc::missing) return error;
  const auto sessions = Session::list(store);
  if (!sessions || find_in(name, *sessions) != nullptr) return error;
  return no_session(name, *sessions);
}

}  // namespace

std::string quoted(std::string_view name) { return fmt::format("\"{}\"", name); }

Result<SessionInfo> find_session(const Store& store, const std::string& name) {
  auto info = Session::describe(store, name);
  if (info) return info;
  return tl::make_unexpected(explained(store, name, std::move(info).error()));
}

Result<Session> resume_session(Store& store, const std::string& name) {
  auto session = Session::resume(store, name);
  if (session) return session;
  return tl::make_unexpected(explained(store, name, std::move(session).error()));
}

Result<std::vector<SessionInfo>> find_sessions(const Store& store,
                                               std::span<const std::string> names) {
  const auto sessions = Session::list(store);
  if (!sessions) return tl::make_unexpected(sessions.error());
  std::vector<SessionInfo> found;
  for (const std::string& name : names) {
    if (find_in(name, found) != nullptr) continue;
    const SessionInfo* session = find_in(name, *sessions);
    if (session == nullptr) return tl::make_unexpected(no_session(name, *sessions));
    found.push_back(*session);
  }
  return found;
}

}  // namespace esker::cli
