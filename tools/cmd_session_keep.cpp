#include <fmt/format.h>

#include "args.hpp"
#include "session_operand.hpp"
#include "session_text.hpp"
#include "units.hpp"

namespace esker::cli {

int run(const SessionKeepArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  auto store = open_to_change(place);
  if (!store) return out.fail(place.label, store.error());
  auto session = resume_session(*store, args.name);
  if (!session) return out.fail(place.label, session.error());
  const auto done = args.off ? session->unkeep() : session->keep(args.max_bytes);
  if (!done) return out.fail(place.label, done.error());
  const auto info = session->info();
  if (!info) return out.fail(place.label, info.error());

  if (args.off) {
    out.line(
        fmt::format("{} is no longer kept: its blocks go when room is needed", quoted(args.name)));
  } else {
    out.line(fmt::format("keeping {}: {} of {} tokens, never evicted", quoted(args.name),
                         format_count(info->kept_tokens), format_count(info->tokens)));
  }
  out.json({{"store", place.label}, {"session", session_value(*info, store->geometry())}});
  return code(Exit::ok);
}

}  // namespace esker::cli
