#include <fmt/format.h>

#include "args.hpp"
#include "describe.hpp"
#include "prometheus.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

void show_room(const Stats& stats, Output& out) {
  out.fact("stored", fmt::format("{} in {}", out.size(stats.store_bytes),
                                 format_items(stats.blocks_ready, "block")));
  out.fact("files", fmt::format("{} in {}", out.size(stats.file_bytes),
                                format_items(stats.segments, "segment")));
  out.fact("blocks",
           fmt::format("{} free, {} reserved, {} retired, {} bad, {} in all",
                       format_count(stats.blocks_free), format_count(stats.blocks_reserved),
                       format_count(stats.blocks_retired), format_count(stats.blocks_bad),
                       format_count(stats.blocks_total)));
  if (stats.cold_files != 0) {
    out.fact("cold",
             fmt::format("{} in {}: {} compressed to {}", format_items(stats.cold_blocks, "block"),
                         format_items(stats.cold_files, "file"), out.size(stats.cold_raw_bytes),
                         out.size(stats.cold_file_bytes)));
  }
  if (stats.segments_unusable != 0) {
    out.fact("unusable",
             fmt::format("{} segments are missing or damaged: `esker verify` names them",
                         stats.segments_unusable));
  }
}

/// What only a seat can see.
void show_shared(const Stats& stats, Output& out) {
  out.fact("pinned", format_items(stats.blocks_pinned, "block"));
  out.fact("seats taken", fmt::format("{}, with ours", format_count(stats.seats_taken)));
  const Counters& count = stats.counters;
  out.line(fmt::format("since {} ({}):", format_time(stats.since_unix_ns),
                       format_age(stats.since_unix_ns)));
  out.fact("hit tokens", fmt::format("{} of {} ({})", format_count(count.hit_tokens),
                                     format_count(count.lookup_tokens),
                                     format_share(count.hit_tokens, count.lookup_tokens)));
  out.fact("lookups",
           fmt::format("{}, {} found nothing ({} of them in doubt)", format_count(count.lookups),
                       format_count(count.misses), format_count(count.degraded_misses)));
  out.fact("published",
           fmt::format("{} tokens in {} blocks, {} adopted from others",
                       format_count(count.published_tokens), format_count(count.published_blocks),
                       format_count(count.adopted_blocks)));
  out.fact("reserved",
           fmt::format("{} tokens, {} blocks dropped, {} times the cache was full",
                       format_count(count.reserved_tokens), format_count(count.dropped_blocks),
                       format_count(count.short_reservations)));
  out.fact("freed blocks",
           fmt::format("{} evicted, {} removed, {} superseded", format_count(count.evicted_blocks),
                       format_count(count.removed_blocks), format_count(count.superseded_blocks)));
  if (count.frozen_blocks + count.thawed_blocks != 0) {
    out.fact("cold blocks", fmt::format("{} frozen, {} thawed", format_count(count.frozen_blocks),
                                        format_count(count.thawed_blocks)));
  }
  out.fact("damage", fmt::format("{} bad blocks", format_count(count.bad_blocks)));
  out.fact("reaped seats", format_count(count.reaped_seats));
  out.fact("bytes", fmt::format("{} written, {} copied, {} verified", out.size(count.written_bytes),
                                out.size(count.copied_bytes), out.size(count.verified_bytes)));
}

Object counter_values(const Counters& count) {
  return {{"lookups", count.lookups},
          {"lookup_tokens", count.lookup_tokens},
          {"hit_tokens", count.hit_tokens},
          {"misses", count.misses},
          {"degraded_misses", count.degraded_misses},
          {"reserved_tokens", count.reserved_tokens},
          {"published_blocks", count.published_blocks},
          {"published_tokens", count.published_tokens},
          {"adopted_blocks", count.adopted_blocks},
          {"dropped_blocks", count.dropped_blocks},
          {"short_reservations", count.short_reservations},
          {"evicted_blocks", count.evicted_blocks},
          {"removed_blocks", count.removed_blocks},
          {"superseded_blocks", count.superseded_blocks},
          {"bad_blocks", count.bad_blocks},
          {"reaped_seats", count.reaped_seats},
          {"displaced_hints", count.displaced_hints},
          {"copied_bytes", count.copied_bytes},
          {"verified_bytes", count.verified_bytes},
          {"written_bytes", count.written_bytes},
          {"frozen_blocks", count.frozen_blocks},
          {"thawed_blocks", count.thawed_blocks}};
}

Object values(const StorePlace& place, const Look& look, const Stats& stats) {
  const auto if_seated = [&look](Value value) { return look.seated ? std::move(value) : Value(); };
  return {{"store", place.label},
          {"model", model_value(look.store.model())},
          {"since", if_seated(time_value(stats.since_unix_ns))},
          {"blocks_free", stats.blocks_free},
          {"blocks_reserved", stats.blocks_reserved},
          {"blocks_ready", stats.blocks_ready},
          {"blocks_retired", stats.blocks_retired},
          {"blocks_bad", stats.blocks_bad},
          {"blocks_total", stats.blocks_total},
          {"blocks_pinned", if_seated(stats.blocks_pinned)},
          {"block_bytes", stats.block_bytes},
          {"store_bytes", stats.store_bytes},
          {"file_bytes", stats.file_bytes},
          {"segments", stats.segments},
          {"segments_unusable", stats.segments_unusable},
          {"blocks_kept", stats.blocks_kept},
          {"cold_files", stats.cold_files},
          {"cold_blocks", stats.cold_blocks},
          {"cold_raw_bytes", stats.cold_raw_bytes},
          {"cold_file_bytes", stats.cold_file_bytes},
          {"seats_taken", if_seated(stats.seats_taken)},
          {"counters", if_seated(counter_values(stats.counters))}};
}

int run_prometheus(const StatArgs& args, Output& out) {
  std::vector<StoreSample> samples;
  if (args.store.empty()) {
    for (const StorePlace& place : stores_in_home()) samples.push_back(sample_store(place));
  } else {
    const StorePlace place = place_of(args.store);
    if (auto info = inspect_place(place); !info) return out.fail(place.label, info.error());
    samples.push_back(sample_store(place));
  }
  for (const StoreSample& sample : samples) {
    if (!sample.stats) out.note(sample.label, "it cannot be opened: esker_up is 0");
  }
  const std::string text = exposition(samples);
  if (args.output.empty() || args.output == "-") {
    out.text(text);
  } else if (auto done = replace_file(args.output, text); !done) {
    return out.fail("", done.error());
  }
  return code(Exit::ok);
}

}  // namespace

int run(const StatArgs& args, Output& out) {
  if (args.prometheus) return run_prometheus(args, out);
  const StorePlace place = place_of(args.store);
  const auto look = look_at(place);
  if (!look) return out.fail(place.label, look.error());
  const Stats stats = look->store.stats();
  out.fact("model", model_line(look->store.model()));
  show_room(stats, out);
  if (look->seated) {
    show_shared(stats, out);
  } else {
    out.note(place.label, "looked at without a seat: pins and counters are not known");
  }
  out.json(values(place, *look, stats));
  return code(Exit::ok);
}

}  // namespace esker::cli
