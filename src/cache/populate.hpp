#pragma once

#include <esker/geometry.hpp>
#include <esker/result.hpp>
#include <string>

#include "format/cache_file.hpp"

namespace esker::detail {

/// Makes the pages of rows ready for writing, many at a time: one by one they cost ten times as
/// much. Where memory or disk is out this is an error, and not the end of the process at the first
/// write. `huge_pages` is for private memory.
[[nodiscard]] Result<void> populate(std::byte* base, const CacheLayout& layout, TokenRange rows,
                                    const std::string& named, bool huge_pages);

}  // namespace esker::detail
