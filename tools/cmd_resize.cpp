#include <fmt/format.h>

#include "args.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

void show(const Resized& done, const StorePlace& place, bool dry_run, Output& out) {
  out.line(fmt::format("{} {}", dry_run ? "would have resized" : "resized", place.label));
  out.fact("capacity", fmt::format("{}, before {}", out.size(done.capacity_bytes),
                                   out.size(done.old_capacity_bytes)));
  if (done.cold_bytes != 0 || done.old_cold_bytes != 0) {
    out.fact("cold share", fmt::format("{}, before {}", out.size(done.cold_bytes),
                                       out.size(done.old_cold_bytes)));
  }
  if (done.removed_segments != 0) {
    out.fact("returned to disk", fmt::format("{} in {}", out.size(done.disk_bytes),
                                             format_items(done.removed_segments, "segment")));
    out.fact("moved", format_items(done.moved_blocks, "block"));
    out.fact("dropped", fmt::format("{}, the least recently used",
                                    format_items(done.dropped_blocks, "block")));
  }
  out.json({{"store", place.label},
            {"dry_run", dry_run},
            {"capacity_bytes", done.capacity_bytes},
            {"old_capacity_bytes", done.old_capacity_bytes},
            {"cold_bytes", done.cold_bytes},
            {"old_cold_bytes", done.old_cold_bytes},
            {"max_segments", done.max_segments},
            {"removed_segments", done.removed_segments},
            {"disk_bytes", done.disk_bytes},
            {"moved_blocks", done.moved_blocks},
            {"dropped_blocks", done.dropped_blocks}});
}

}  // namespace

int run(const ResizeArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  if (const auto there = inspect_place(place); !there) return out.fail(place.label, there.error());
  ResizeOptions options;
  options.capacity_bytes = args.capacity_bytes;
  options.cold_bytes = args.cold_bytes;
  options.dry_run = true;
  auto done = Store::resize(place.path, options);
  if (!done) return out.fail(place.label, done.error());
  if (!args.change.dry_run) {
    const std::string question =
        fmt::format("Drop {} from {}?", format_items(done->dropped_blocks, "block"), place.label);
    if (done->dropped_blocks != 0 && !out.confirm(question, args.change.assume_yes)) {
      return out.fail(place.label, "left as it is");
    }
    options.dry_run = false;
    done = Store::resize(place.path, options);
    if (!done) return out.fail(place.label, done.error());
  }
  show(*done, place, args.change.dry_run, out);
  return code(Exit::ok);
}

}  // namespace esker::cli
