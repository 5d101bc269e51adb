#include "args.hpp"
#include "describe.hpp"
#include "store_operand.hpp"

namespace esker::cli {

int run(const TrimArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  auto store = open_to_change(place);
  if (!store) return out.fail(place.label, store.error());
  const auto freed = store->trim(args.keep_free_bytes, args.change.dry_run);
  if (!freed) return out.fail(place.label, freed.error());
  show_freed(out, place, "trimmed", *freed, args.change.dry_run);
  return code(Exit::ok);
}

}  // namespace esker::cli
