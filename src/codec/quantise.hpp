#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codec/codec.hpp"
#include "codec/filters.hpp"

namespace esker::detail {

/// True for the elements that can be quantised: f16, bf16, f32.
[[nodiscard]] bool can_quantise(const RowShape& shape) noexcept;

/// What rows of this size come to, always.
[[nodiscard]] std::size_t quantised_bytes(const RowShape& shape, Lossy lossy,
                                          std::size_t rows_bytes) noexcept;

/// False when an element is not finite, or numbers are so far apart that their difference is not.
[[nodiscard]] bool quantise(std::span<const std::byte> rows, const RowShape& shape, Lossy lossy,
                            Filtered& out);

/// `in` has `quantised_bytes`; any bytes give rows.
void dequantise(std::span<const std::byte> in, const RowShape& shape, Lossy lossy,
                std::span<std::byte> rows);

[[nodiscard]] ErrorSums measure(std::span<const std::byte> exact,
                                std::span<const std::byte> decoded, const RowShape& shape) noexcept;

/// Of rows that are coded exactly: no error, but their elements count. What is not finite does not.
[[nodiscard]] ErrorSums exact_sums(std::span<const std::byte> rows, const RowShape& shape) noexcept;

}  // namespace esker::detail
