#pragma once

#include <string>

#include "base/error.hpp"
#include "codec/codec.hpp"

namespace esker::detail {

/// The shape, or one of single bytes where the elements do not fill the row.
[[nodiscard]] inline RowShape usable_shape(RowShape shape) noexcept {
  const bool fits = shape.element_bytes != 0 && shape.row_bytes % shape.element_bytes == 0;
  const bool known_float =
      shape.exponent_bits == 0 || (shape.element_bytes == 2 && shape.exponent_bits == 5) ||
      ((shape.element_bytes == 2 || shape.element_bytes == 4) && shape.exponent_bits == 8);
  if (fits && known_float) return shape;
  shape.element_bytes = 1;
  shape.exponent_bits = 0;
  return shape;
}

[[nodiscard]] inline Result<void> check_rows(std::size_t rows_bytes, const RowShape& shape) {
  if (shape.row_bytes != 0 && rows_bytes % shape.row_bytes == 0) return {};
  return fail(Errc::invalid, "rows are " + std::to_string(rows_bytes) +
                                 " bytes, expected a multiple of " +
                                 std::to_string(shape.row_bytes));
}

}  // namespace esker::detail
