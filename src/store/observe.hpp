#pragma once

#include <cstdint>
#include <esker/block_info.hpp>
#include <esker/stats.hpp>
#include <vector>

#include "store/core.hpp"

namespace esker::detail {

[[nodiscard]] Stats gather_stats(const Core& core) noexcept;
[[nodiscard]] std::vector<Process> list_processes(const Core& core);
/// Facts of the superblock, completed from the directory.
[[nodiscard]] Info describe_store(const Directory& directory, const Superblock& superblock);
[[nodiscard]] std::vector<PathInfo> list_paths(Core& core);
[[nodiscard]] std::vector<BlockInfo> list_blocks(Core& core);
/// The path with this name, pinned, or nullptr.
[[nodiscard]] PrefixBody* pin_path(Core& core, std::uint64_t path);

}  // namespace esker::detail
