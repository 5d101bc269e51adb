#include <unistd.h>

#include <algorithm>

#include "args.hpp"
#include "describe.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// Without a seat the processes are known, but not what they hold.
Table process_table(const std::vector<Process>& processes, const Look& look, const Output& out) {
  const std::uint64_t block_bytes = look.store.geometry().block_bytes();
  const auto held = [&look](std::string text) { return look.seated ? std::move(text) : "?"; };
  Table table{{{"SEAT", true},
               {"PID", true},
               {"COMMAND"},
               {"STATE"},
               {"PINS", true},
               {"PINNED", true},
               {"RESERVED", true},
               {"OPENED"}},
              {}};
  for (const Process& process : processes) {
    const Cell state = process.alive ? Cell("alive", Tint::good) : Cell("dead", Tint::bad);
    table.rows.push_back({std::to_string(process.seat), std::to_string(process.pid),
                          process.command, state, held(format_count(process.pinned_blocks)),
                          held(out.size(process.pinned_blocks * block_bytes)),
                          held(out.size(process.reserved_blocks * block_bytes)),
                          format_age(process.opened_unix_ns)});
  }
  return table;
}

}  // namespace

int run(const PsArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  const auto look = look_at(place);
  if (!look) return out.fail(place.label, look.error());
  std::vector<Process> processes = look->store.processes();
  const auto self = static_cast<std::uint32_t>(getpid());
  std::erase_if(processes, [self](const Process& process) { return process.pid == self; });

  if (processes.empty()) {
    out.note(place.label, look->seated ? "no process has it open"
                                       : "whether a process has it open cannot be seen from here");
  } else {
    out.table(process_table(processes, *look, out));
  }
  List list;
  for (const Process& process : processes) {
    list.emplace_back(
        Object{{"seat", process.seat},
               {"pid", process.pid},
               {"command", process.command},
               {"alive", process.alive},
               {"opened", time_value(process.opened_unix_ns)},
               {"pinned_blocks", look->seated ? Value(process.pinned_blocks) : Value()},
               {"reserved_blocks", look->seated ? Value(process.reserved_blocks) : Value()}});
  }
  out.json({{"store", place.label}, {"processes", std::move(list)}});
  return code(Exit::ok);
}

}  // namespace esker::cli
