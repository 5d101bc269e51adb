#include <unistd.h>

#include <algorithm>

#include "args.hpp"
#include "describe.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

Table process_table(const std::vector<Process>& processes, std::uint64_t block_bytes,
                    const Output& out) {
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
    table.rows.push_back(
        {std::to_string(process.seat), std::to_string(process.pid), process.command, state,
         format_count(process.pinned_blocks), out.size(process.pinned_blocks * block_bytes),
         out.size(process.reserved_blocks * block_bytes), format_age(process.opened_unix_ns)});
  }
  return table;
}

}  // namespace

int run(const PsArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  const auto store = open_with_seat(place);
  if (!store) return out.fail(place.label, store.error());
  std::vector<Process> processes = store->processes();
  const auto self = static_cast<std::uint32_t>(getpid());
  std::erase_if(processes, [self](const Process& process) { return process.pid == self; });

  if (processes.empty()) {
    out.note(place.label, "no process has it open");
  } else {
    out.table(process_table(processes, store->geometry().block_bytes(), out));
  }
  List list;
  for (const Process& process : processes) {
    list.emplace_back(Object{{"seat", process.seat},
                             {"pid", process.pid},
                             {"command", process.command},
                             {"alive", process.alive},
                             {"opened", time_value(process.opened_unix_ns)},
                             {"pinned_blocks", process.pinned_blocks},
                             {"reserved_blocks", process.reserved_blocks}});
  }
  out.json({{"store", place.label}, {"processes", std::move(list)}});
  return code(Exit::ok);
}

}  // namespace esker::cli
