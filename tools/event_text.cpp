#include "event_text.hpp"

#include <fmt/format.h>

#include <cstring>

#include "describe.hpp"

namespace esker::cli {

std::string event_text(const Event& event) {
  std::string text =
      fmt::format("{:<16}  pid {:<7} seat {:<4}", name(event.kind), event.pid, event.seat);
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

}  // namespace esker::cli
