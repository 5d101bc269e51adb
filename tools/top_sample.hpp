#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store_operand.hpp"

namespace esker::cli {

/// What a look at a store saw. Nothing stays open between looks, so that watching a store neither
/// takes a seat for long nor keeps others from destroying or resizing it.
struct TopSample {
  std::string label;
  std::string problem;  ///< why it could not be opened, or ""
  bool seated = false;  ///< pins, processes and counters are known
  Info info;
  std::string model;
  Stats stats;
  std::vector<Process> processes;  ///< without ourselves
  std::vector<Event> events;       ///< the newest last
  std::chrono::steady_clock::time_point taken;
};

/// What happened per second between two looks.
struct Rates {
  double lookups = 0;
  double misses = 0;
  double copied_bytes = 0;
  double written_bytes = 0;
  double published_blocks = 0;
  double evicted_blocks = 0;
  std::uint64_t lookup_tokens = 0;  ///< in all
  std::uint64_t hit_tokens = 0;
};

[[nodiscard]] TopSample look_once(const StorePlace& place);

/// None when either look saw no counters, or they began anew in between.
[[nodiscard]] std::optional<Rates> rates_between(const TopSample& before, const TopSample& now);

}  // namespace esker::cli
