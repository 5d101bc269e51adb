#include "top_sample.hpp"

#include <unistd.h>

#include <algorithm>

#include "describe.hpp"

namespace esker::cli {

TopSample look_once(const StorePlace& place) {
  TopSample sample;
  sample.label = place.label;
  auto look = look_at(place, Use::none);
  if (look) {
    auto info = look->store.info();
    if (info) sample.info = std::move(*info);
    if (!info) sample.problem = std::move(info.error().message);
    sample.seated = look->seated;
    sample.model = model_line(look->store.model());
    sample.stats = look->store.stats();
    sample.processes = look->store.processes();
    if (look->seated) sample.events = look->store.events();
  } else {
    sample.problem = std::move(look.error().message);
  }
  const auto self = static_cast<std::uint32_t>(getpid());
  std::erase_if(sample.processes, [self](const Process& process) { return process.pid == self; });
  sample.taken = std::chrono::steady_clock::now();
  return sample;
}

std::optional<Rates> rates_between(const TopSample& before, const TopSample& now) {
  if (!before.seated || !now.seated) return std::nullopt;
  if (before.stats.since_unix_ns != now.stats.since_unix_ns) return std::nullopt;
  const double seconds = std::chrono::duration<double>(now.taken - before.taken).count();
  if (seconds <= 0) return std::nullopt;
  const Counters& old = before.stats.counters;
  const Counters& fresh = now.stats.counters;
  const auto grown = [&](std::uint64_t Counters::*count) -> std::uint64_t {
    return fresh.*count - std::min(fresh.*count, old.*count);
  };
  const auto rate = [&](std::uint64_t Counters::*count) {
    return static_cast<double>(grown(count)) / seconds;
  };
  Rates rates;
  rates.lookups = rate(&Counters::lookups);
  rates.misses = rate(&Counters::misses);
  rates.copied_bytes = rate(&Counters::copied_bytes);
  rates.written_bytes = rate(&Counters::written_bytes);
  rates.published_blocks = rate(&Counters::published_blocks);
  rates.evicted_blocks = rate(&Counters::evicted_blocks);
  rates.lookup_tokens = grown(&Counters::lookup_tokens);
  rates.hit_tokens = std::min(grown(&Counters::hit_tokens), rates.lookup_tokens);
  return rates;
}

}  // namespace esker::cli
