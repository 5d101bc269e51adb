#pragma once

#include <cstdint>
#include <esker/stats.hpp>
#include <span>

#include "store/core.hpp"
#include "store/evict.hpp"

namespace esker::detail {

/// See Store::freeze.
[[nodiscard]] Result<Frozen> freeze(Core& core, std::uint64_t unix_ns,
                                    const FreezeOptions& options);

/// For the evictor: moves what it can of these victims into cold files, and does not wait for
/// others who do. Returns how many blocks are FREE now; on any failure the rest is as it was.
std::uint32_t freeze_victims(Core& core, std::span<const Victim> victims) noexcept;

}  // namespace esker::detail
