#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/codec.hpp"

namespace esker::detail {

/// What is done to rows before they are compressed. Stands in files: never renumber.
/// doc/snapshot_format.md describes each.
enum class Filter : std::uint8_t {
  none = 0,
  planes = 1,  ///< byte 0 of all elements, then byte 1 of all…
};

/// Bytes of `rows` in the order of `filter`; `out` is as long as `rows`.
void planes_apply(std::span<const std::byte> rows, std::size_t element_bytes,
                  std::span<std::byte> out) noexcept;
void planes_undo(std::span<const std::byte> in, std::size_t element_bytes,
                 std::span<std::byte> rows) noexcept;

}  // namespace esker::detail
