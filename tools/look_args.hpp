#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace esker::cli {

struct TopArgs {
  std::string store;  ///< "": all stores in the home
  std::uint64_t interval_ms = 1000;
  std::optional<std::uint32_t> count;  ///< views until it ends; none: until someone ends it
};

struct ReportArgs {
  std::string store;
  std::string output;  ///< "-" is stdout
  bool force = false;
  bool tokens = false;         ///< show token ids, which tell what was said
  std::uint64_t watch_ms = 0;  ///< how long counters are watched before the page is written
};

}  // namespace esker::cli
