#include "top_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "describe.hpp"
#include "event_text.hpp"
#include "plain_text.hpp"
#include "styled_line.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

constexpr std::string_view bold = "1";
constexpr std::string_view dim = "2";
constexpr std::string_view red = "31";
constexpr std::string_view green = "32";
constexpr std::string_view yellow = "33";
constexpr std::string_view blue = "34";
constexpr std::size_t label_letters = 10;

double part_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string per_second(double value) { return fmt::format("{:.1f}/s", value); }

std::string bytes_per_second(double value) {
  return format_bytes(static_cast<std::uint64_t>(value)) + "/s";
}

/// Collects the lines of a view, as many as fit.
class View {
 public:
  explicit View(const TopFrame& frame) : frame_(frame) {}

  void add(const StyledLine& line) {
    if (left() != 0) lines_.push_back(line.text(columns(), frame_.colored));
  }
  void add(std::string_view text, std::string_view style = "") {
    add(StyledLine().add(text, style));
  }
  /// "name      what is known".
  void fact(std::string_view name, std::string_view text) { add(labelled(name).add(text)); }
  [[nodiscard]] static StyledLine labelled(std::string_view name) {
    return StyledLine().add(fmt::format("{:<{}}", name, label_letters), dim);
  }
  void title(std::string_view subject, std::string_view more) {
    const std::string time = format_time(now_unix_ns()).substr(11, 8) + " UTC";
    const std::string right = frame_.hint.empty() ? time : frame_.hint + "  " + time;
    add(StyledLine()
            .add("esker top", bold)
            .add("  ")
            .add(subject, bold)
            .add("  ")
            .add(more)
            .right(right, columns(), dim));
  }
  [[nodiscard]] std::size_t left() const { return frame_.size.rows - lines_.size(); }
  [[nodiscard]] std::size_t columns() const { return frame_.size.columns; }
  [[nodiscard]] std::size_t bar() const { return std::clamp<std::size_t>(columns() / 4, 6, 40); }
  [[nodiscard]] std::vector<std::string> lines() && { return std::move(lines_); }

 private:
  const TopFrame& frame_;
  std::vector<std::string> lines_;
};

void show_room(const TopSample& store, View& view) {
  const Info& info = store.info;
  const Stats& stats = store.stats;
  StyledLine room = View::labelled("disk");
  const double used = part_of(info.disk_bytes, info.capacity_bytes);
  add_bar(room, view.bar(), used, used > 0.9 ? yellow : green);
  view.add(room.add(fmt::format("  {} of {} ({})", format_bytes(info.disk_bytes),
                                format_bytes(info.capacity_bytes),
                                format_share(info.disk_bytes, info.capacity_bytes))));
  StyledLine blocks = View::labelled("blocks");
  add_bar(blocks, view.bar(),
          {{stats.blocks_ready, '|', green},
           {stats.blocks_reserved, '+', yellow},
           {stats.blocks_retired, '-', blue},
           {stats.blocks_bad, '!', red}},
          stats.blocks_total);
  blocks.add(fmt::format("  {} ready", format_count(stats.blocks_ready)), green);
  blocks.add(fmt::format(" {} reserved", format_count(stats.blocks_reserved)), yellow);
  blocks.add(fmt::format(" {} retired", format_count(stats.blocks_retired)), blue);
  blocks.add(fmt::format(" {} bad", format_count(stats.blocks_bad)),
             stats.blocks_bad == 0 ? "" : red);
  view.add(blocks.add(fmt::format(" {} free", format_count(stats.blocks_free))));
  if (info.cold_bytes == 0) return;
  StyledLine cold = View::labelled("cold");
  add_bar(cold, view.bar(), part_of(stats.cold_file_bytes, info.cold_bytes), blue);
  view.add(cold.add(fmt::format("  {} of {}, {}", format_bytes(stats.cold_file_bytes),
                                format_bytes(info.cold_bytes),
                                format_items(stats.cold_blocks, "block"))));
}

void show_hits(const TopPair& store, View& view) {
  const Counters& all = store.now.stats.counters;
  if (!store.now.seated) {
    view.fact("hits", "not known: no seat is free, or the disk is read-only");
    return;
  }
  const auto rates = rates_between(store.before, store.now);
  const std::uint64_t asked = rates ? rates->lookup_tokens : 0;
  const std::uint64_t found = rates ? rates->hit_tokens : 0;
  StyledLine hits = View::labelled("hits");
  add_bar(hits, view.bar(), part_of(found, asked), green);
  const std::string now =
      asked == 0 ? "no lookups now" : format_share(found, asked) + " of tokens now";
  view.add(hits.add(
      fmt::format("  {}, {} since boot", now, format_share(all.hit_tokens, all.lookup_tokens))));
  const Rates rate = rates.value_or(Rates{});
  view.fact("lookups",
            fmt::format("{}, {} found nothing", per_second(rate.lookups), per_second(rate.misses)));
  view.fact("rows", fmt::format("{} copied, {} written", bytes_per_second(rate.copied_bytes),
                                bytes_per_second(rate.written_bytes)));
  view.fact("turnover",
            fmt::format("{} blocks published, {} evicted", per_second(rate.published_blocks),
                        per_second(rate.evicted_blocks)));
}

void show_processes(const TopSample& store, std::size_t most, View& view) {
  view.add("");
  view.add(
      fmt::format("{:>7} {:<16} {:>12} {:>12}  {}", "PID", "COMMAND", "PINNED", "RESERVED",
                  fmt::format("OPENED    ({})", format_items(store.processes.size(), "handle"))),
      dim);
  std::vector<Process> processes = store.processes;
  std::sort(processes.begin(), processes.end(), [](const Process& a, const Process& b) {
    return std::pair(b.pinned_blocks, a.seat) < std::pair(a.pinned_blocks, b.seat);
  });
  const std::uint64_t block_bytes = store.stats.block_bytes;
  for (std::size_t i = 0; i < processes.size() && i < most; ++i) {
    const Process& process = processes[i];
    view.add(fmt::format("{:>7} {} {:>12} {:>12}  {}", process.pid,
                         fitted(harmless(process.command), 16),
                         format_bytes(process.pinned_blocks * block_bytes),
                         format_bytes(process.reserved_blocks * block_bytes),
                         process.alive ? format_age(process.opened_unix_ns) : "dead"),
             process.alive ? "" : red);
  }
}

void show_events(const TopSample& store, std::size_t most, View& view) {
  view.add("");
  view.add("EVENTS", dim);
  const std::size_t count = std::min({store.events.size(), view.left(), most});
  if (count == 0) view.add("  none since boot", dim);
  for (std::size_t i = 0; i < count; ++i) {
    const Event& event = store.events[store.events.size() - 1 - i];
    const bool damage = event.kind == EventKind::block_bad ||
                        event.kind == EventKind::segment_unusable ||
                        event.kind == EventKind::cold_damaged;
    view.add(fmt::format("{:<13} {}", format_age(event.unix_ns), event_text(event)),
             damage ? red : "");
  }
}

std::string hit_share(const TopPair& store) {
  const auto rates = rates_between(store.before, store.now);
  if (!rates || rates->lookup_tokens == 0) return "-";
  return format_share(rates->hit_tokens, rates->lookup_tokens);
}

StyledLine home_line(const TopPair& store, const View& view, std::size_t name_letters) {
  const TopSample& now = store.now;
  StyledLine line;
  line.add(fitted(harmless(now.label), name_letters) + " ", now.problem.empty() ? "" : red);
  if (!now.problem.empty()) return line.add(now.problem, red);
  const std::size_t bar = view.columns() >= 100 ? 16 : 8;
  const double used = part_of(now.info.disk_bytes, now.info.capacity_bytes);
  add_bar(line, bar, used, used > 0.9 ? yellow : green);
  const Rates rate = rates_between(store.before, now).value_or(Rates{});
  line.add(fmt::format(" {:>10} {:>8} {:>10} {:>12}", format_bytes(now.info.disk_bytes),
                       hit_share(store), now.seated ? per_second(rate.lookups) : "?",
                       now.seated ? bytes_per_second(rate.copied_bytes) : "?"));
  return line.add(fmt::format(" {:>5}", now.processes.size()))
      .add(fmt::format("  {}", now.model), dim);
}

}  // namespace

std::vector<std::string> store_view(const TopPair& store, const TopFrame& frame) {
  View view(frame);
  const TopSample& now = store.now;
  view.title(now.label, now.model);
  if (!now.problem.empty()) {
    view.add(now.problem, red);
    return std::move(view).lines();
  }
  show_room(now, view);
  show_hits(store, view);
  // What is left is shared: processes may take half of it, events the rest.
  constexpr std::size_t headings = 4;
  const std::size_t left = std::max(view.left(), headings) - headings;
  const std::size_t processes = std::min(now.processes.size(), std::min(left - left / 2, left));
  if (view.left() > 2) show_processes(now, processes, view);
  constexpr std::size_t plain_events = 10;  // where no screen sets a limit
  if (view.left() > 2) show_events(now, plain_events + (left < 1000 ? left : 0), view);
  return std::move(view).lines();
}

std::vector<std::string> home_view(const std::vector<TopPair>& stores, const TopFrame& frame) {
  View view(frame);
  view.title(home_directory(), format_items(stores.size(), "store"));
  std::size_t name_letters = 5;
  for (const TopPair& store : stores) {
    name_letters = std::max(name_letters, width(harmless(store.now.label)));
  }
  name_letters = std::min(name_letters, std::max<std::size_t>(view.columns() / 5, 5));
  const std::size_t bar = view.columns() >= 100 ? 16 : 8;
  view.add(fmt::format("{:<{}} {:<{}} {:>10} {:>8} {:>10} {:>12} {:>5}  {}", "STORE", name_letters,
                       "FULL", bar + 2, "DISK", "HITS", "LOOKUPS", "COPIED", "PROCS", "MODEL"),
           dim);
  for (const TopPair& store : stores) {
    if (view.left() == 1 && &store != &stores.back()) {
      view.add(fmt::format("... {} more", &stores.back() - &store + 1), dim);
      break;
    }
    view.add(home_line(store, view, name_letters));
  }
  if (stores.empty()) view.add("  no stores here yet: `esker create` makes one", dim);
  return std::move(view).lines();
}

Object top_value(const TopPair& store) {
  const TopSample& now = store.now;
  Object value{{"store", now.label}};
  if (!now.problem.empty()) {
    value.emplace_back("problem", now.problem);
    return value;
  }
  const auto rates = rates_between(store.before, now);
  const auto known = [&](auto field) { return rates ? Value(field(*rates)) : Value(); };
  for (auto& [name, entry] :
       Object{{"disk_bytes", now.info.disk_bytes},
              {"capacity_bytes", now.info.capacity_bytes},
              {"blocks_free", now.stats.blocks_free},
              {"blocks_reserved", now.stats.blocks_reserved},
              {"blocks_ready", now.stats.blocks_ready},
              {"blocks_retired", now.stats.blocks_retired},
              {"blocks_bad", now.stats.blocks_bad},
              {"blocks_pinned", now.seated ? Value(now.stats.blocks_pinned) : Value()},
              {"cold_file_bytes", now.stats.cold_file_bytes},
              {"processes", now.processes.size()},
              {"lookup_tokens", known([](const Rates& rate) { return rate.lookup_tokens; })},
              {"hit_tokens", known([](const Rates& rate) { return rate.hit_tokens; })},
              {"lookups_per_s", known([](const Rates& rate) { return rate.lookups; })},
              {"misses_per_s", known([](const Rates& rate) { return rate.misses; })},
              {"copied_bytes_per_s", known([](const Rates& rate) { return rate.copied_bytes; })},
              {"written_bytes_per_s", known([](const Rates& rate) { return rate.written_bytes; })},
              {"published_blocks_per_s",
               known([](const Rates& rate) { return rate.published_blocks; })},
              {"evicted_blocks_per_s",
               known([](const Rates& rate) { return rate.evicted_blocks; })}}) {
    value.emplace_back(name, std::move(entry));
  }
  return value;
}

}  // namespace esker::cli
