#include <cstring>

#include "codec/filters.hpp"

namespace esker::detail {

namespace {

// Pairs are the common case, and in this shape the compiler makes vector shuffles of them.
void split_pairs(const std::byte* rows, std::size_t pairs, std::byte* low,
                 std::byte* high) noexcept {
  for (std::size_t i = 0; i < pairs; ++i) {
    low[i] = rows[2 * i];
    high[i] = rows[2 * i + 1];
  }
}

void join_pairs(const std::byte* low, const std::byte* high, std::size_t pairs,
                std::byte* rows) noexcept {
  for (std::size_t i = 0; i < pairs; ++i) {
    rows[2 * i] = low[i];
    rows[2 * i + 1] = high[i];
  }
}

}  // namespace

void planes_apply(std::span<const std::byte> rows, std::size_t element_bytes,
                  std::span<std::byte> out) noexcept {
  const std::size_t elements = rows.size() / element_bytes;
  if (element_bytes == 2) return split_pairs(rows.data(), elements, out.data(), &out[elements]);
  for (std::size_t plane = 0; plane < element_bytes; ++plane) {
    std::byte* to = out.data() + plane * elements;
    const std::byte* from = rows.data() + plane;
    for (std::size_t i = 0; i < elements; ++i) to[i] = from[i * element_bytes];
  }
}

void planes_undo(std::span<const std::byte> in, std::size_t element_bytes,
                 std::span<std::byte> rows) noexcept {
  const std::size_t elements = rows.size() / element_bytes;
  if (element_bytes == 2) return join_pairs(in.data(), &in[elements], elements, rows.data());
  for (std::size_t plane = 0; plane < element_bytes; ++plane) {
    const std::byte* from = in.data() + plane * elements;
    std::byte* to = rows.data() + plane;
    for (std::size_t i = 0; i < elements; ++i) to[i * element_bytes] = from[i];
  }
}

}  // namespace esker::detail
