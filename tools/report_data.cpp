#include "report_data.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <esker/session.hpp>
#include <thread>

#include "units.hpp"

namespace esker::cli {

namespace {

constexpr std::size_t shown_paths = 50;

void keep_largest(std::vector<PathInfo>& paths) {
  const auto larger = [](const PathInfo& a, const PathInfo& b) {
    return std::pair(b.bytes, a.path) < std::pair(a.bytes, b.path);
  };
  const std::size_t count = std::min(paths.size(), shown_paths);
  std::partial_sort(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(count), paths.end(),
                    larger);
  paths.resize(count);
}

/// The first tokens of a path, looked at without a use: a page must not keep blocks from eviction.
std::string first_tokens(const Store& store, std::uint64_t path) {
  constexpr std::size_t shown = 32;
  const auto prefix = store.lookup_path(path);
  if (!prefix) return "";
  const auto ids = prefix->token_ids();
  if (!ids) return "";
  const std::size_t count = std::min(ids->size(), shown);
  return fmt::format("{}{}", fmt::join(ids->begin(), ids->begin() + static_cast<int>(count), " "),
                     ids->size() > count ? " ..." : "");
}

Result<void> read_tokens(const StorePlace& place, ReportData& data) {
  Options options;
  options.access = Access::inspect;
  options.counts_as_use = false;
  const auto store = Store::open(place.path, options);
  if (!store) return tl::make_unexpected(store.error());
  for (const PathInfo& path : data.paths) {
    if (!path.key) data.token_text[path.path] = first_tokens(*store, path.path);
  }
  return {};
}

template <class T>
Result<void> take(Result<T> from, T& to) {
  if (!from) return tl::make_unexpected(std::move(from).error());
  to = std::move(*from);
  return {};
}

}  // namespace

Result<std::vector<HitSample>> watch_hits(const StorePlace& place, std::uint64_t watch_ms,
                                          const std::function<void(std::uint64_t)>& tell) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::milliseconds;
  constexpr std::uint64_t columns = 80;
  const milliseconds period(std::max<std::uint64_t>(watch_ms / columns, 100));
  const Clock::time_point start = Clock::now();
  const Clock::time_point end = start + milliseconds(watch_ms);
  std::vector<HitSample> samples;
  for (Clock::time_point next = start;; next += period) {
    std::this_thread::sleep_until(std::min(next, end));
    const auto look = look_at(place, Use::none);
    if (!look) return tl::make_unexpected(look.error());
    if (look->seated) {
      const Counters counters = look->store.stats().counters;
      samples.push_back({now_unix_ns(), counters.lookup_tokens, counters.hit_tokens});
    }
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now()).count();
    if (left <= 0) return samples;
    tell(static_cast<std::uint64_t>(left));
  }
}

Result<ReportData> gather_report(const StorePlace& place, bool tokens) {
  ReportData data;
  data.label = place.label;
  auto look = look_at(place, Use::none);
  if (!look) return tl::make_unexpected(std::move(look).error());
  const Store& store = look->store;
  data.seated = look->seated;
  auto done = take(store.info(), data.info);
  if (done) done = take(Session::list(store), data.sessions);
  if (done) done = take(store.blocks(), data.blocks);
  if (done) done = take(store.paths(), data.paths);
  if (!done) return tl::make_unexpected(std::move(done).error());
  data.stats = store.stats();
  data.processes = store.processes();
  const auto self = static_cast<std::uint32_t>(getpid());
  std::erase_if(data.processes, [self](const Process& process) { return process.pid == self; });
  if (data.seated) data.events = store.events();
  data.branches = branches_of(data.blocks, store.geometry().block_bytes(), place.label);
  data.path_count = data.paths.size();
  keep_largest(data.paths);
  std::sort(data.sessions.begin(), data.sessions.end(),
            [](const SessionInfo& a, const SessionInfo& b) {
              return std::pair(b.used_unix_ns, a.name) < std::pair(a.used_unix_ns, b.name);
            });
  if (tokens) done = read_tokens(place, data);
  if (!done) return tl::make_unexpected(std::move(done).error());
  data.taken_unix_ns = now_unix_ns();
  return data;
}

}  // namespace esker::cli
