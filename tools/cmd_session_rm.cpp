#include <fmt/format.h>

#include "args.hpp"
#include "describe.hpp"
#include "session_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// All names are settled before anything goes: a slip in the last one removes nothing.
Result<std::vector<std::string>> doomed(const SessionRmArgs& args, const Store& store) {
  const auto sessions = args.expired ? Session::list(store) : find_sessions(store, args.names);
  if (!sessions) return tl::make_unexpected(sessions.error());
  std::vector<std::string> names;
  for (const SessionInfo& session : *sessions) {
    if (!args.expired || session.expired) names.push_back(session.name);
  }
  return names;
}

}  // namespace

int run(const SessionRmArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  auto store = open_to_change(place);
  if (!store) return out.fail(place.label, store.error());
  const auto names = doomed(args, *store);
  if (!names) return out.fail(place.label, names.error());

  const bool dry_run = args.change.dry_run;
  const std::string what = format_items(names->size(), "session");
  if (!dry_run && !names->empty() &&
      !out.confirm(fmt::format("Forget {} of {}?", what, place.label), args.change.assume_yes)) {
    return out.fail(place.label, "left as it is");
  }
  const auto freed = names->empty() ? Freed{} : Session::remove(*store, *names, dry_run);
  if (!freed) return out.fail(place.label, freed.error());
  show_freed(out, "removed", what, *freed, dry_run);
  if (args.expired || dry_run) {
    for (const std::string& name : *names) out.line("  " + name);
  }
  Object fields = freed_value(place, *freed, dry_run);
  fields.emplace_back("shared_blocks", freed->shared_blocks);
  fields.emplace_back("sessions", List(names->begin(), names->end()));
  out.json(std::move(fields));
  return code(Exit::ok);
}

}  // namespace esker::cli
