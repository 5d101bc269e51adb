#include <chrono>
#include <thread>

#include "args.hpp"
#include "event_text.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

constexpr auto poll_interval = std::chrono::milliseconds(200);

std::string event_line(const Event& event) {
  return format_time(event.unix_ns) + "  " + event_text(event);
}

/// Prints what comes until nobody reads it any more or a signal ends the process.
void follow(const Store& store, std::uint64_t last, Output& out) {
  while (!out.reader_gone()) {
    for (const Event& event : store.events(last)) {
      out.line(event_line(event));
      out.json_line(event_value(event));
      last = event.sequence;
    }
    out.flush();
    std::this_thread::sleep_for(poll_interval);
  }
}

}  // namespace

int run(const LogArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  const auto store = open_with_seat(place);
  if (!store) return out.fail(place.label, store.error());
  if (args.follow) {
    follow(*store, args.since, out);
    return code(Exit::ok);
  }
  List list;
  for (const Event& event : store->events(args.since)) {
    out.line(event_line(event));
    list.emplace_back(event_value(event));
  }
  out.json({{"store", place.label}, {"events", std::move(list)}});
  return code(Exit::ok);
}

}  // namespace esker::cli
