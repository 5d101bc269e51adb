#include <algorithm>
#include <functional>

#include "codec/filters.hpp"

namespace esker::detail {

void previous_apply(std::span<const std::byte> rows, std::size_t row_bytes,
                    std::span<std::byte> out) noexcept {
  std::copy_n(rows.begin(), std::min(row_bytes, rows.size()), out.begin());
  const std::byte* before = rows.data();
  for (std::size_t i = row_bytes; i < rows.size(); ++i) out[i] = rows[i] ^ before[i - row_bytes];
}

void previous_undo(std::span<std::byte> rows, std::size_t row_bytes) noexcept {
  // Row by row: within one, no byte waits for another, so whole vectors go at once.
  for (std::size_t at = row_bytes; at < rows.size(); at += row_bytes) {
    std::byte* row = rows.data() + at;
    std::transform(row, row + row_bytes, row - row_bytes, row, std::bit_xor<>());
  }
}

}  // namespace esker::detail
