#include <cstring>

#include "codec/filters.hpp"

namespace esker::detail {

namespace {

constexpr std::size_t side = 8;

std::uint64_t load(const std::byte* from) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

/// Swaps bits of `a` above with bits of `b` below, where `mask` says.
void exchange(std::uint64_t& a, std::uint64_t& b, unsigned shift, std::uint64_t mask) noexcept {
  const std::uint64_t change = ((a >> shift) ^ b) & mask;
  a ^= change << shift;
  b ^= change;
}

/// A square of 8 × 8 bytes in eight words: halves, then quarters, then bytes change places.
void transpose_square(const std::byte* from, std::size_t from_stride, std::byte* to,
                      std::size_t to_stride) noexcept {
  std::array<std::uint64_t, side> w{};
  for (std::size_t i = 0; i < side; ++i) w[i] = load(from + i * from_stride);
  for (std::size_t i = 0; i < 4; ++i) exchange(w[i], w[i + 4], 32, 0x00000000FFFFFFFF);
  for (const unsigned i : {0U, 1U, 4U, 5U}) exchange(w[i], w[i + 2], 16, 0x0000FFFF0000FFFF);
  for (const unsigned i : {0U, 2U, 4U, 6U}) exchange(w[i], w[i + 1], 8, 0x00FF00FF00FF00FF);
  for (std::size_t i = 0; i < side; ++i) std::memcpy(to + i * to_stride, &w[i], sizeof w[i]);
}

}  // namespace

void transpose_bytes(std::span<const std::byte> in, std::size_t in_rows, std::size_t in_columns,
                     std::span<std::byte> out) noexcept {
  const std::size_t whole_rows = in_rows / side * side;
  const std::size_t whole_columns = in_columns / side * side;
  for (std::size_t row = 0; row < whole_rows; row += side) {
    for (std::size_t column = 0; column < whole_columns; column += side) {
      transpose_square(&in[row * in_columns + column], in_columns, &out[column * in_rows + row],
                       in_rows);
    }
  }
  for (std::size_t row = 0; row < in_rows; ++row) {
    const std::size_t first = row < whole_rows ? whole_columns : 0;
    for (std::size_t column = first; column < in_columns; ++column) {
      out[column * in_rows + row] = in[row * in_columns + column];
    }
  }
}

}  // namespace esker::detail
