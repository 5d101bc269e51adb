#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "args.hpp"
#include "describe.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

constexpr auto poll_interval = std::chrono::milliseconds(200);

std::string event_line(const Event& event) {
  std::string text = fmt::format("{}  {:<16}  pid {:<7} seat {:<4}", format_time(event.unix_ns),
                                 name(event.kind), event.pid, event.seat);
  if (event.kind == EventKind::block_bad) text += fmt::format("  block {}", event.block);
  if (event.os_error != 0) text += fmt::format("  {}", std::strerror(event.os_error));
  if (!event.note.empty()) text += "  " + event.note;
  return text;
}

Object event_value(const Event& event) {
  return {{"sequence", event.sequence}, {"time", time_value(event.unix_ns)},
          {"kind", name(event.kind)},   {"pid", event.pid},
          {"seat", event.seat},         {"block", event.block},
          {"os_error", event.os_error}, {"note", event.note}};
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
