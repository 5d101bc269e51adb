#pragma once

#include <cstdint>
#include <esker/home.hpp>
#include <esker/result.hpp>
#include <functional>
#include <vector>

#include "region/directory.hpp"

namespace esker::detail {

/// How a home is brought within its budget. Whoever asks holds the lock of the home.
struct BudgetRequest {
  std::uint64_t budget_bytes = 0;
  std::uint64_t wanted_bytes = 0;  ///< what the asker is about to add
  bool dry_run = false;
  std::function<void(const HomeStore&)> on_removed = [](const HomeStore&) {};
};

/// Removes unused stores until `wanted_bytes` fit, or, where that cannot be reached, until the home
/// is within its budget: nothing is removed in vain.
[[nodiscard]] Result<BudgetReport> make_room(const Directory& home, const BudgetRequest& request);

/// The stores of a directory, those first that nobody has opened for longest.
[[nodiscard]] Result<std::vector<HomeStore>> stores_below(const Directory& home);

}  // namespace esker::detail
