#include <fmt/format.h>

#include <algorithm>

#include "args.hpp"
#include "progress.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// The moment `seconds` ago; what was used just now is older than no time at all.
std::uint64_t moment_before(std::uint64_t seconds) {
  constexpr std::uint64_t ns_per_s = 1'000'000'000;
  if (seconds == 0) return UINT64_MAX;
  const std::uint64_t now = now_unix_ns();
  return now - std::min(seconds, now / ns_per_s) * ns_per_s;
}

void show(const Frozen& frozen, const StorePlace& place, bool dry_run, Output& out) {
  out.line(fmt::format("{}{} of {}", dry_run ? "would freeze " : "froze ",
                       format_items(frozen.blocks, "block"), place.label));
  if (frozen.known_blocks != 0) {
    out.fact("known", fmt::format("{}: a cold copy was there already",
                                  format_items(frozen.known_blocks, "block")));
  }
  if (dry_run) {
    out.fact("compresses", out.size(frozen.raw_bytes));
  } else if (frozen.raw_bytes != 0) {
    out.fact("compressed",
             fmt::format("{} to {}", out.size(frozen.raw_bytes), out.size(frozen.cold_bytes)));
  }
  if (frozen.dropped_blocks != 0) {
    out.fact("dropped", fmt::format("{} of old cold files, to keep the share",
                                    format_items(frozen.dropped_blocks, "block")));
  }
  if (frozen.pinned_blocks + frozen.kept_blocks != 0) {
    out.fact("stay",
             fmt::format("{} in use, {} of kept sessions", format_count(frozen.pinned_blocks),
                         format_count(frozen.kept_blocks)));
  }
  out.json({{"store", place.label},
            {"dry_run", dry_run},
            {"blocks", frozen.blocks},
            {"known_blocks", frozen.known_blocks},
            {"raw_bytes", frozen.raw_bytes},
            {"cold_bytes", frozen.cold_bytes},
            {"dropped_blocks", frozen.dropped_blocks},
            {"pinned_blocks", frozen.pinned_blocks},
            {"kept_blocks", frozen.kept_blocks}});
}

}  // namespace

int run(const FreezeArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  auto store = open_to_change(place);
  if (!store) return out.fail(place.label, store.error());
  ProgressLine progress(out, "freezing");
  FreezeOptions options;
  options.most_bytes = args.most_bytes;
  options.compression = args.compression;
  options.level = args.level;
  options.threads = args.threads;
  options.dry_run = args.dry_run;
  options.progress = progress.callback();
  const auto frozen = store->freeze(moment_before(args.older_than_s), options);
  progress.done();
  if (!frozen) return out.fail(place.label, frozen.error());
  show(*frozen, place, args.dry_run, out);
  return code(Exit::ok);
}

}  // namespace esker::cli
