#include <fmt/format.h>

#include <algorithm>

#include "args.hpp"
#include "session_operand.hpp"
#include "session_text.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// Damaged sessions last, by name: nothing else is known of them.
void sort_sessions(std::vector<SessionInfo>& sessions, SessionOrder by) {
  const auto before = [by](const SessionInfo& a, const SessionInfo& b) {
    if (a.damage.empty() != b.damage.empty()) return a.damage.empty();
    if (by == SessionOrder::tokens && a.tokens != b.tokens) return a.tokens > b.tokens;
    if (by == SessionOrder::used && a.used_unix_ns != b.used_unix_ns) {
      return a.used_unix_ns > b.used_unix_ns;
    }
    return a.name < b.name;
  };
  std::sort(sessions.begin(), sessions.end(), before);
}

}  // namespace

int run(const SessionLsArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  const auto look = look_at(place);
  if (!look) return out.fail(place.label, look.error());
  auto sessions = Session::list(look->store);
  if (!sessions) return out.fail(place.label, sessions.error());
  sort_sessions(*sessions, args.sort);

  const Geometry& geometry = look->store.geometry();
  out.line(fmt::format("{}: {}", place.label, format_items(sessions->size(), "session")));
  if (!sessions->empty()) out.table(session_table(*sessions, geometry, out));
  List list;
  for (const SessionInfo& session : *sessions) {
    list.emplace_back(session_value(session, geometry));
    if (session.damage.empty()) continue;
    out.note(place.label, fmt::format("session {} is damaged: {}; `esker session rm` forgets it",
                                      quoted(session.name), session.damage));
  }
  out.json({{"store", place.label}, {"sessions", std::move(list)}});
  return code(Exit::ok);
}

}  // namespace esker::cli
