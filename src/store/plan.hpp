#pragma once

#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/options.hpp>
#include <esker/result.hpp>
#include <string_view>

#include "format/superblock.hpp"

namespace esker::detail {

/// What a new store's file system offers.
struct Surroundings {
  std::uint64_t free_bytes = 0;
  bool tmpfs = false;
};

/// Splits the capacity into shares and chooses the size of a segment. `path` is for messages.
[[nodiscard]] Result<Superblock> plan_store(const Geometry& geometry, const ModelId& model,
                                            const Options& options,
                                            const Surroundings& surroundings,
                                            std::string_view path);

}  // namespace esker::detail
