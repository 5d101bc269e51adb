#pragma once

#include <cstdint>
#include <esker/home.hpp>
#include <optional>
#include <string>
#include <vector>

#include "change_args.hpp"

namespace esker::cli {

// One struct per command that keeps house.

struct ConfigArgs {
  bool sets_budget = false;
  std::optional<std::uint64_t> budget_bytes;  ///< with `sets_budget`; none: no budget
  std::optional<KeepFree> keep_free;
};

struct ResizeArgs {
  std::string store;
  std::optional<std::uint64_t> capacity_bytes;
  std::optional<std::uint64_t> cold_bytes;
  ChangeArgs change;
};

struct MaintainArgs {
  std::vector<std::string> stores;  ///< empty: those of the home, and the home itself
  std::uint64_t freeze_after_s = 7 * 24 * 3600;
  bool dry_run = false;
};

}  // namespace esker::cli
