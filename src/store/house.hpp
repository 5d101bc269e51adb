#pragma once

#include <cstdint>
#include <esker/options.hpp>
#include <esker/result.hpp>
#include <esker/stats.hpp>
#include <span>

#include "catalog/session_files.hpp"
#include "store/core.hpp"

namespace esker::detail {

/// Housekeeping that a person or a program asks for; see the members of Store.
[[nodiscard]] Freed evict_to(Core& core, std::uint64_t target_bytes, bool dry_run);
[[nodiscard]] Freed evict_unused_since(Core& core, std::uint64_t unix_ns, bool dry_run);
[[nodiscard]] Result<Freed> remove_paths(Core& core, std::span<const std::uint64_t> paths,
                                         bool dry_run);
/// Removes what only the sequences in `gone` use: no other path, and none that stays.
[[nodiscard]] Result<Freed> remove_sequences(Core& core, std::span<const SessionRecord> gone,
                                             std::span<const SessionRecord> staying, bool dry_run);
[[nodiscard]] Result<Freed> trim(Core& core, std::uint64_t keep_free_bytes, bool dry_run);
[[nodiscard]] Result<VerifyReport> verify(Core& core, const Progress& progress);

}  // namespace esker::detail
