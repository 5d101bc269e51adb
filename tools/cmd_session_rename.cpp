#include <fmt/format.h>

#include "args.hpp"
#include "session_operand.hpp"

namespace esker::cli {

int run(const SessionRenameArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  auto store = open_to_change(place);
  if (!store) return out.fail(place.label, store.error());
  auto session = resume_session(*store, args.name);
  if (!session) return out.fail(place.label, session.error());
  const auto renamed = session->rename(args.new_name);
  if (!renamed) return out.fail(place.label, renamed.error());

  out.line(fmt::format("renamed {} to {}", quoted(args.name), quoted(args.new_name)));
  out.json({{"store", place.label}, {"from", args.name}, {"name", args.new_name}});
  return code(Exit::ok);
}

}  // namespace esker::cli
