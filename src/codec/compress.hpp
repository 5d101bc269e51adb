#pragma once

#include <cstddef>
#include <esker/options.hpp>
#include <span>
#include <vector>

namespace esker::detail {

/// The longest that any method makes of `bytes`.
[[nodiscard]] std::size_t compress_bound(std::size_t bytes) noexcept;

/// Compresses into `out`, which has room for `compress_bound`. The length, or 0 when the library
/// could not, or when the result would be no shorter than the input.
[[nodiscard]] std::size_t compress(Compression method, int level, std::span<const std::byte> in,
                                   std::span<std::byte> out) noexcept;

/// True when `in` decoded to exactly `out`. Never reads or writes outside of the two.
[[nodiscard]] bool decompress(Compression method, std::span<const std::byte> in,
                              std::span<std::byte> out) noexcept;

}  // namespace esker::detail
