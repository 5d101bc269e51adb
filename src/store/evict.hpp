#pragma once

#include <cstdint>
#include <vector>

#include "store/core.hpp"

namespace esker::detail {

/// A block that may go, with what its touch word says.
struct Victim {
  std::uint32_t block = 0;
  std::uint32_t generation = 0;
  TouchWord touch;
};

/// All READY, settled blocks that nobody pins and no session keeps, those that should go first in
/// front: the least recently used, among equals the deeper, so that a leaf goes before its parent.
[[nodiscard]] std::vector<Victim> victims(Core& core);

/// Retires a victim, unless somebody pins or keeps it by now.
[[nodiscard]] bool evict_one(Core& core, const Victim& victim) noexcept;

/// Makes room for at least `wanted` blocks, if so many can go; frees 1/64 of the store at once.
/// Returns the blocks that became FREE.
std::uint32_t evict_for(Core& core, std::uint32_t wanted) noexcept;

}  // namespace esker::detail
