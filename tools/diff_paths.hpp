#pragma once

#include <cstdint>
#include <esker/options.hpp>
#include <span>
#include <string>
#include <vector>

#include "diff_side.hpp"

namespace esker::cli {

/// Tokens of a path that the other side lacks, and that no path before it has reported.
struct OnlyHere {
  const DiffPath* path = nullptr;
  TokenRange tokens;
};

/// Rows of one plane that differ between the sides.
struct Unequal {
  const DiffPath* path = nullptr;  ///< of the first side
  std::uint32_t layer = 0;
  Plane plane = Plane::key;
  std::uint32_t rows = 0;         ///< so many
  std::uint32_t first_token = 0;  ///< the first of them
};

struct RowDifference {
  std::uint64_t tokens = 0;  ///< compared: in both sides, each once
  std::uint64_t rows = 0;    ///< unequal ones, of all planes
  std::vector<Unequal> unequal;
};

/// What `paths` holds beyond `other`. Both are sorted, and what paths share counts once.
[[nodiscard]] std::vector<OnlyHere> only_here(std::span<const DiffPath> paths,
                                              std::span<const DiffPath> other);

/// One side with its sorted paths.
struct Listed {
  const DiffSide& side;
  std::span<const DiffPath> paths;
};

/// Compares the rows of all tokens that both sides hold.
[[nodiscard]] Result<RowDifference> compare_rows(const Listed& a, const Listed& b,
                                                 const Progress& progress);

}  // namespace esker::cli
