#include <fmt/format.h>

#include <esker/version.hpp>

#include "args.hpp"
#include "store_list.hpp"

namespace esker::cli {

int run(const OverviewArgs&, Output& out) {
  const std::vector<ListedStore> stores = list_home();
  const std::string home = home_directory();
  out.line(
      fmt::format("esker {}: keeps the KV cache of LLM inference for every process, and for "
                  "the next one.",
                  version()));
  out.line("");
  if (stores.empty()) {
    out.line(fmt::format("No stores in {} yet. Make one:", home));
    out.line("  esker create chat --like slot.bin --model-file model.gguf");
    out.line(
        "  esker create chat --layers 32 --kv-heads 8 --head-dim 128 --dtype f16 "
        "--model name=llama-8b");
  } else {
    out.table(store_table(stores, out));
    out.line("");
    out.line(fmt::format("{} on disk in {}", out.size(disk_bytes(stores)), home));
    const std::string& first = stores.front().place.label;
    out.line("");
    out.line("Next:");
    out.line(fmt::format("  esker ls {0:<20} the paths that {0} holds", first));
    out.line(fmt::format("  esker session ls {0:<12} the chats that are kept by name", first));
    out.line(fmt::format("  esker stat {0:<18} hits, evictions, room", first));
    out.line(fmt::format("  esker verify {0:<16} check every byte", first));
  }
  out.line("  esker --help                  all commands");
  out.json({{"version", version()},
            {"home", home},
            {"disk_bytes", disk_bytes(stores)},
            {"stores", store_values(stores)}});
  return code(Exit::ok);
}

}  // namespace esker::cli
