#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "args.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// What this process cleaned up: opening the store may have done a part of it already.
std::uint64_t reaped_by_us(const Store& store) {
  const auto self = static_cast<std::uint32_t>(getpid());
  std::uint64_t seats = 0;
  for (const Event& event : store.events()) {
    if (event.kind == EventKind::seat_reaped && event.pid == self) ++seats;
  }
  return seats;
}

}  // namespace

int run(const ReapArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  auto store = open_to_change(place);
  if (!store) return out.fail(place.label, store.error());
  const auto reaped = store->reap();
  if (!reaped) return out.fail(place.label, reaped.error());
  const std::uint64_t seats = std::max<std::uint64_t>(*reaped, reaped_by_us(*store));
  out.line(fmt::format("reaped {} of dead processes", format_items(seats, "seat")));
  out.json({{"store", place.label}, {"reaped_seats", seats}});
  return code(Exit::ok);
}

}  // namespace esker::cli
