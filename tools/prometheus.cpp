#include "prometheus.hpp"

#include <fmt/format.h>

#include <functional>

#include "describe.hpp"
#include "plain_text.hpp"

namespace esker::cli {

namespace {

struct Gauge {
  std::string_view name;
  std::string_view help;
  std::uint64_t Stats::*value;
};

constexpr Gauge gauges[] = {
    {"pinned_blocks", "Blocks that some process holds in place.", &Stats::blocks_pinned},
    {"kept_blocks", "Blocks of kept sessions, which are never evicted.", &Stats::blocks_kept},
    {"block_bytes", "Bytes of rows in one block.", &Stats::block_bytes},
    {"stored_bytes", "Bytes of rows in blocks that can be found.", &Stats::store_bytes},
    {"cold_blocks", "Blocks that have a compressed copy.", &Stats::cold_blocks},
    {"cold_raw_bytes", "Bytes of these blocks before they were compressed.",
     &Stats::cold_raw_bytes},
    {"cold_file_bytes", "Bytes of the files that hold compressed blocks.", &Stats::cold_file_bytes},
};

struct BlockCount {
  std::string_view state;
  std::uint64_t Stats::*value;
};

constexpr BlockCount block_counts[] = {
    {"free", &Stats::blocks_free},   {"reserved", &Stats::blocks_reserved},
    {"ready", &Stats::blocks_ready}, {"retired", &Stats::blocks_retired},
    {"bad", &Stats::blocks_bad},
};

struct Count {
  std::string_view name;
  std::string_view help;
  std::uint64_t Counters::*value;
};

constexpr Count counts[] = {
    {"lookups", "Lookups.", &Counters::lookups},
    {"lookup_tokens", "Tokens that lookups asked for.", &Counters::lookup_tokens},
    {"hit_tokens", "Tokens that lookups found.", &Counters::hit_tokens},
    {"misses", "Lookups that found nothing.", &Counters::misses},
    {"degraded_misses", "Lookups that gave up in doubt.", &Counters::degraded_misses},
    {"reserved_tokens", "Tokens that room was reserved for.", &Counters::reserved_tokens},
    {"published_blocks", "Blocks published.", &Counters::published_blocks},
    {"published_tokens", "Tokens published.", &Counters::published_tokens},
    {"adopted_blocks", "Blocks that another process published first.", &Counters::adopted_blocks},
    {"dropped_blocks", "Blocks reserved and never published.", &Counters::dropped_blocks},
    {"short_reservations", "Reservations that a full store cut short.",
     &Counters::short_reservations},
    {"evicted_blocks", "Blocks evicted to make room.", &Counters::evicted_blocks},
    {"removed_blocks", "Blocks removed by name.", &Counters::removed_blocks},
    {"superseded_blocks", "Partial blocks that a longer one replaced.",
     &Counters::superseded_blocks},
    {"bad_blocks", "Blocks whose checksum did not hold.", &Counters::bad_blocks},
    {"reaped_seats", "Seats of dead processes that were cleaned up.", &Counters::reaped_seats},
    {"displaced_hints", "Entries that the index had to push out.", &Counters::displaced_hints},
    {"copied_bytes", "Bytes of rows copied out.", &Counters::copied_bytes},
    {"verified_bytes", "Bytes of rows whose checksum was compared.", &Counters::verified_bytes},
    {"written_bytes", "Bytes of rows written.", &Counters::written_bytes},
    {"frozen_blocks", "Blocks compressed into cold files.", &Counters::frozen_blocks},
    {"thawed_blocks", "Blocks brought back from cold files.", &Counters::thawed_blocks},
};

/// Collects a family of samples at a time, as the format wants them: never mixed.
class Page {
 public:
  explicit Page(const std::vector<StoreSample>& stores) : stores_(stores) {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = fmt::format("esker_{}", name);
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name_, help, type);
  }
  /// `labels` beside the store's begin with a comma.
  template <class Value>
  void sample(const StoreSample& store, Value value, std::string_view labels = "") {
    text_ +=
        fmt::format("{}{{store=\"{}\"{}}} {}\n", name_, label_text(store.label), labels, value);
  }
  template <class Value>
  void of_info(std::string_view name, std::string_view help, Value Info::*value) {
    family(name, "gauge", help);
    for (const StoreSample& store : stores_) {
      if (store.info) sample(store, (*store.info).*value);
    }
  }
  template <class Value>
  void of_stats(std::string_view name, std::string_view help, Value Stats::*value,
                bool needs_seat = false) {
    family(name, "gauge", help);
    for (const StoreSample& store : stores_) {
      if (store.stats && (store.seated || !needs_seat)) sample(store, (*store.stats).*value);
    }
  }
  /// Nanoseconds since 1970 as seconds; 0 is "not known".
  void of_time(std::string_view name, std::string_view help,
               const std::function<std::uint64_t(const StoreSample&)>& unix_ns) {
    family(name, "gauge", help);
    for (const StoreSample& store : stores_) {
      const std::uint64_t time = unix_ns(store);
      if (time != 0) sample(store, fmt::format("{}.{:09}", time / ns_per_s, time % ns_per_s));
    }
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  static constexpr std::uint64_t ns_per_s = 1'000'000'000;
  const std::vector<StoreSample>& stores_;
  std::string name_;
  std::string text_;
};

void put_identity(Page& page, const std::vector<StoreSample>& stores) {
  page.family("up", "gauge", "Whether the store could be opened.");
  for (const StoreSample& store : stores) page.sample(store, store.stats ? 1 : 0);
  page.family("seated", "gauge", "Whether a seat was free, without which counters are missing.");
  for (const StoreSample& store : stores) {
    if (store.stats) page.sample(store, store.seated ? 1 : 0);
  }
  page.family("info", "gauge", "What the store is made for; always 1.");
  for (const StoreSample& store : stores) {
    if (!store.info) continue;
    page.sample(store, 1,
                fmt::format(",model=\"{}\",dtype=\"{}\"", label_text(model_line(store.info->model)),
                            label_text(store.info->geometry.dtype)));
  }
}

void put_room(Page& page, const std::vector<StoreSample>& stores) {
  page.of_info("capacity_bytes", "Cap for all files of the store.", &Info::capacity_bytes);
  page.of_info("disk_bytes", "Bytes that the store's files take on disk.", &Info::disk_bytes);
  page.of_info("seats", "Handles that can be open at a time.", &Info::seats);
  page.of_time("last_used_timestamp_seconds", "When a file of the store was last touched.",
               [](const StoreSample& store) { return store.info ? last_used(*store.info) : 0; });
  page.of_stats("segments", "Segment files.", &Stats::segments);
  page.of_stats("segments_unusable", "Segment files that are missing or damaged.",
                &Stats::segments_unusable);
  page.family("blocks", "gauge", "Blocks in the segments that exist, by state.");
  for (const StoreSample& store : stores) {
    if (!store.stats) continue;
    for (const BlockCount& count : block_counts) {
      page.sample(store, (*store.stats).*count.value, fmt::format(",state=\"{}\"", count.state));
    }
  }
  for (const Gauge& gauge : gauges) {
    page.of_stats(gauge.name, gauge.help, gauge.value, gauge.value == &Stats::blocks_pinned);
  }
  page.of_stats("cold_files", "Files that hold compressed blocks.", &Stats::cold_files);
  page.of_stats("seats_taken", "Handles that are open, with the one that looked.",
                &Stats::seats_taken, true);
}

void put_counters(Page& page, const std::vector<StoreSample>& stores) {
  page.of_time("counters_start_timestamp_seconds",
               "When the counters began, at the latest at boot.", [](const StoreSample& store) {
                 return store.seated ? store.stats->since_unix_ns : std::uint64_t{0};
               });
  for (const Count& count : counts) {
    page.family(fmt::format("{}_total", count.name), "counter", count.help);
    for (const StoreSample& store : stores) {
      if (store.seated) page.sample(store, store.stats->counters.*count.value);
    }
  }
}

}  // namespace

StoreSample sample_store(const StorePlace& place) {
  StoreSample sample{place.label, std::nullopt, std::nullopt, false};
  if (auto look = look_at(place, Use::none)) {
    sample.seated = look->seated;
    sample.stats = look->store.stats();
  }
  if (auto info = inspect(place.path)) sample.info = std::move(*info);
  return sample;
}

std::string label_text(std::string_view value) {
  std::string text;
  for (const char letter : harmless(value)) {
    if (letter == '"' || letter == '\\') text += '\\';
    text += letter;
  }
  return text;
}

std::string exposition(const std::vector<StoreSample>& stores) {
  Page page(stores);
  put_identity(page, stores);
  put_room(page, stores);
  put_counters(page, stores);
  return std::move(page).text();
}

}  // namespace esker::cli
