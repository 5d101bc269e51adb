#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "branches.hpp"

namespace esker::cli {

/// A piece of an icicle plot: below each branch stand those that follow it, as wide as what they
/// hold.
struct Icicle {
  double x = 0;
  double width = 0;
  std::uint32_t row = 0;
  std::uint32_t branch = UINT32_MAX;  ///< none: several, too narrow to be told apart
  std::uint64_t branches = 1;
  std::uint64_t paths = 0;
  std::uint64_t bytes = 0;  ///< with all that follows
  std::uint64_t last_used_unix_ns = 0;
  bool cut = false;  ///< more follows than there are rows
};

struct IcicleLimits {
  double width = 1120;
  std::uint32_t rows = 24;
  std::size_t pieces = 4000;
};

/// Lays the branches out. What is too narrow is joined, the recently used with the recently used,
/// so that no more pieces come out than the limit says.
[[nodiscard]] std::vector<Icicle> lay_out(std::span<const Branch> branches,
                                          const IcicleLimits& limits);

}  // namespace esker::cli
