#include <fmt/format.h>

#include "args.hpp"
#include "session_operand.hpp"
#include "session_text.hpp"

namespace esker::cli {

int run(const SessionForkArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  auto store = open_to_change(place);
  if (!store) return out.fail(place.label, store.error());
  auto session = resume_session(*store, args.name);
  if (!session) return out.fail(place.label, session.error());
  const auto fork = session->fork(args.new_name);
  if (!fork) return out.fail(place.label, fork.error());
  const auto info = fork->info();
  if (!info) return out.fail(place.label, info.error());

  out.line(fmt::format("forked {} as {}: {}", quoted(args.name), quoted(args.new_name),
                       reusable_line(*info)));
  out.json({{"store", place.label},
            {"from", args.name},
            {"session", session_value(*info, store->geometry())}});
  return code(Exit::ok);
}

}  // namespace esker::cli
