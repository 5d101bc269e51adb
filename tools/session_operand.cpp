#include "session_operand.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "units.hpp"

namespace esker::cli {

namespace {

std::string hint_among(std::string_view name, std::span<const SessionInfo> sessions) {
  std::vector<std::string> names;
  for (const SessionInfo& session : sessions) names.push_back(session.name);
  const std::string_view meant = nearest(name, names);
  if (!meant.empty() && meant != name) return fmt::format("; did you mean {}?", quoted(meant));
  if (names.empty()) return "; the store has no sessions";
  return fmt::format("; `esker session ls STORE` lists the {}",
                     format_items(names.size(), "session"));
}

}  // namespace

std::string quoted(std::string_view name) { return fmt::format("\"{}\"", name); }

Error with_session_hint(const Store& store, std::string_view name, Error error) {
  if (error.code != Errc::missing) return error;
  const auto sessions = Session::list(store);
  if (sessions) error.message += hint_among(name, *sessions);
  return error;
}

Result<SessionInfo> find_session(const Store& store, const std::string& name) {
  auto info = Session::describe(store, name);
  if (info) return info;
  return tl::make_unexpected(with_session_hint(store, name, std::move(info).error()));
}

Result<Session> resume_session(Store& store, const std::string& name) {
  auto session = Session::resume(store, name);
  if (session) return session;
  return tl::make_unexpected(with_session_hint(store, name, std::move(session).error()));
}

Result<std::vector<SessionInfo>> find_sessions(const Store& store,
                                               std::span<const std::string> names) {
  const auto sessions = Session::list(store);
  if (!sessions) return tl::make_unexpected(sessions.error());
  std::vector<SessionInfo> found;
  for (const std::string& name : names) {
    const auto named = [&](const SessionInfo& session) { return session.name == name; };
    if (std::any_of(found.begin(), found.end(), named)) continue;
    const auto session = std::find_if(sessions->begin(), sessions->end(), named);
    if (session == sessions->end()) {
      return tl::make_unexpected(Error{
          Errc::missing, 0,
          fmt::format("there is no session {}{}", quoted(name), hint_among(name, *sessions))});
    }
    found.push_back(*session);
  }
  return found;
}

}  // namespace esker::cli
