#pragma once

#include <cstdint>
#include <esker/session_info.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "branches.hpp"
#include "store_operand.hpp"

namespace esker::cli {

/// Counters at one moment.
struct HitSample {
  std::uint64_t unix_ns = 0;
  std::uint64_t lookup_tokens = 0;
  std::uint64_t hit_tokens = 0;
};

/// All that a page shows of a store.
struct ReportData {
  std::string label;
  bool seated = false;  ///< pins, processes and counters are known
  Info info;
  Stats stats;
  std::vector<Process> processes;  ///< without ourselves
  std::vector<Event> events;       ///< oldest first
  std::vector<SessionInfo> sessions;
  std::vector<BlockInfo> blocks;
  std::vector<Branch> branches;
  std::vector<PathInfo> paths;                      ///< the largest, first
  std::uint64_t path_count = 0;                     ///< all of them
  std::map<std::uint64_t, std::string> token_text;  ///< by path; empty unless asked for
  std::vector<HitSample> hits;                      ///< over the time that was watched
  std::uint64_t taken_unix_ns = 0;
};

/// Reads counters over so long a time. `tell` hears how many milliseconds are left.
[[nodiscard]] Result<std::vector<HitSample>> watch_hits(
    const StorePlace& place, std::uint64_t watch_ms,
    const std::function<void(std::uint64_t)>& tell);

[[nodiscard]] Result<ReportData> gather_report(const StorePlace& place, bool tokens);

}  // namespace esker::cli
