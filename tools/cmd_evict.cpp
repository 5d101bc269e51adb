#include <fmt/format.h>

#include "args.hpp"
#include "describe.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// The moment `seconds` ago, or 1970 for all that is longer.
std::uint64_t moment_before(std::uint64_t seconds) {
  constexpr std::uint64_t ns_per_s = 1'000'000'000;
  const std::uint64_t now = now_unix_ns();
  return seconds > now / ns_per_s ? 0 : now - seconds * ns_per_s;
}

}  // namespace

int run(const EvictArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  auto store = open_to_change(place);
  if (!store) return out.fail(place.label, store.error());
  const bool dry_run = args.change.dry_run;
  if (!dry_run &&
      !out.confirm(fmt::format("Evict from {}?", place.label), args.change.assume_yes)) {
    return out.fail(place.label, "left as it is");
  }
  const auto freed = args.to_bytes
                         ? store->evict(*args.to_bytes, dry_run)
                         : store->evict_older_than(moment_before(*args.older_than_s), dry_run);
  if (!freed) return out.fail(place.label, freed.error());
  show_freed(out, place, "evicted", *freed, dry_run);
  return code(Exit::ok);
}

}  // namespace esker::cli
