#include "llama/transpose.hpp"

#include <algorithm>
#include <cstring>

namespace esker::cli::llama {

namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

// The element size is a template argument so that a copy becomes one move.
template <std::size_t Element>
void spread(std::span<const std::byte> buffer, const ChannelWindow& window, const RowShape& shape,
            std::span<std::byte> out) {
  const std::size_t channels = buffer.size() / (std::size_t{window.rows} * Element);
  for (std::size_t i = 0; i < shape.row_of_position.size(); ++i) {
    const std::size_t column = shape.row_of_position[i] - window.first_row;
    std::byte* to = out.data() + i * shape.row_bytes + shape.first_channel * Element;
    for (std::size_t channel = 0; channel < channels; ++channel) {
      const std::byte* from = buffer.data() + (channel * window.rows + column) * Element;
      std::memcpy(to + channel * Element, from, Element);
    }
  }
}

template <std::size_t Element>
void gather(std::span<const std::byte> rows, std::uint32_t row_bytes, const ChannelTarget& target) {
  const std::size_t count = rows.size() / row_bytes;
  for (std::size_t row = 0; row < count; ++row) {
    const std::byte* from = rows.data() + row * row_bytes + target.first_channel * Element;
    for (std::size_t channel = 0; channel < target.count; ++channel) {
      const std::size_t index = channel * target.tokens + target.first_token + row;
      std::memcpy(target.channels.data() + index * Element, from + channel * Element, Element);
    }
  }
}

}  // namespace

ChannelWindow choose_window(std::uint32_t lowest_row, std::uint32_t highest_row,
                            std::uint32_t all_rows, std::uint32_t element_bytes) {
  const std::uint32_t rows = highest_row - lowest_row + 1;
  if (rows < all_rows / 4) return {lowest_row, rows, 1};
  const std::size_t channel_bytes = std::size_t{all_rows} * element_bytes;
  const std::size_t channels = std::max<std::size_t>(1, buffer_bytes / channel_bytes);
  return {0, all_rows, static_cast<std::uint32_t>(channels)};
}

void channels_to_rows(std::span<const std::byte> buffer, const ChannelWindow& window,
                      const RowShape& shape, std::span<std::byte> out) {
  if (shape.element_bytes == 2) {
    spread<2>(buffer, window, shape, out);
  } else {
    spread<4>(buffer, window, shape, out);
  }
}

void rows_to_channels(std::span<const std::byte> rows, std::uint32_t row_bytes,
                      std::uint32_t element_bytes, const ChannelTarget& target) {
  if (element_bytes == 2) {
    gather<2>(rows, row_bytes, target);
  } else {
    gather<4>(rows, row_bytes, target);
  }
}

}  // namespace esker::cli::llama
