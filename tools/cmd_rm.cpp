#include <fmt/format.h>

#include "args.hpp"
#include "describe.hpp"
#include "path_name.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

int run(const RmArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  auto store = open_to_change(place);
  if (!store) return out.fail(place.label, store.error());
  const auto stored = store->paths();
  if (!stored) return out.fail(place.label, stored.error());

  // All names are settled before anything goes: a slip in the last one removes nothing.
  std::vector<std::uint64_t> paths;
  const bool some_cold = store->stats().cold_files != 0;
  for (const std::string& text : args.paths) {
    const auto path = some_cold ? find_path_or_cold(text, *stored) : find_path(text, *stored);
    if (!path) return out.fail(place.label, path.error());
    paths.push_back(*path);
  }
  if (!args.change.dry_run &&
      !out.confirm(fmt::format("Forget {} of {}?", format_items(paths.size(), "path"), place.label),
                   args.change.assume_yes)) {
    return out.fail(place.label, "left as it is");
  }
  const auto freed = store->remove(paths, args.change.dry_run);
  if (!freed) return out.fail(place.label, freed.error());
  show_freed(out, place, "removed", *freed, args.change.dry_run);
  return code(Exit::ok);
}

}  // namespace esker::cli
