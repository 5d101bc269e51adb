#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace esker::cli::llama {

/// How much of a plane that is stored channel by channel is read at a time.
struct ChannelWindow {
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;      ///< of each channel
  std::uint32_t channels = 1;  ///< more than 1 only when whole channels are read
};

/// Few rows of many: a piece of each channel. Otherwise whole channels, many at a time.
[[nodiscard]] ChannelWindow choose_window(std::uint32_t lowest_row, std::uint32_t highest_row,
                                          std::uint32_t all_rows, std::uint32_t element_bytes);

/// What a transposition goes from or to: rows in order of position.
struct RowShape {
  std::span<const std::uint32_t> row_of_position;  ///< where each wanted row stands in a channel
  std::uint32_t first_channel = 0;
  std::uint32_t element_bytes = 0;
  std::uint32_t row_bytes = 0;
};

/// Spreads `buffer`, channels of `window.rows` elements each, over the rows in `out`.
void channels_to_rows(std::span<const std::byte> buffer, const ChannelWindow& window,
                      const RowShape& shape, std::span<std::byte> out);

/// Gathers channels from packed `rows` and puts them at `first_token` of channels that are `tokens`
/// elements long.
struct ChannelTarget {
  std::span<std::byte> channels;
  std::uint32_t first_channel = 0;
  std::uint32_t count = 0;
  std::uint32_t first_token = 0;
  std::uint32_t tokens = 0;
};
void rows_to_channels(std::span<const std::byte> rows, std::uint32_t row_bytes,
                      std::uint32_t element_bytes, const ChannelTarget& target);

}  // namespace esker::cli::llama
