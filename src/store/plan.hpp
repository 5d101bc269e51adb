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

/// The same store with another capacity and another share for cold blocks: the size of a segment
/// stays. `Errc::full` where not even one segment would fit, with the least capacity that works.
[[nodiscard]] Result<Superblock> plan_resize(const Superblock& now, std::uint64_t capacity_bytes,
                                             std::uint64_t cold_bytes, std::string_view path);
/// The least capacity with which a store has `segments` segments.
[[nodiscard]] std::uint64_t least_capacity(const Superblock& now, std::uint32_t segments,
                                           std::uint64_t cold_bytes);

}  // namespace esker::detail
