#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/codec.hpp"

namespace esker::detail {

/// What is done to rows before they are compressed. Stands in files: never renumber.
/// doc/snapshot_format.md describes each.
enum class Filter : std::uint8_t {
  none = 0,
  planes = 1,           ///< byte 0 of all elements, then byte 1 of all…
  channel_planes = 2,   ///< the same, each plane by channels instead of by tokens
  previous_planes = 3,  ///< each row XOR the one before it, then planes
  centred_planes = 4,   ///< floats relative to what is usual for their channel, then planes
  packed_3 = 5,         ///< exponents in 3 bits relative to their channel's, with escapes
  packed_4 = 6,         ///< the same in 4 bits
};
inline constexpr std::uint8_t filter_count = 7;

/// Filtered bytes, and where they change their nature: each part gets an entropy code of its own.
struct Filtered {
  std::vector<std::byte>& bytes;
  std::array<std::size_t, 8> part_end{};
  std::size_t parts = 0;
  std::size_t head_bytes = 0;  ///< that do not grow with the number of rows
  void end_part(std::size_t at) noexcept { part_end[parts++] = at; }
};

/// True when the filter has a meaning for such rows. A row is a multiple of the element.
[[nodiscard]] bool filter_fits(Filter filter, const RowShape& shape) noexcept;

/// How many bytes a filter can make of `rows_bytes`: at least, and at most.
struct FilteredRange {
  std::size_t least = 0;
  std::size_t most = 0;
};
[[nodiscard]] FilteredRange filtered_range(Filter filter, const RowShape& shape,
                                           std::size_t rows_bytes) noexcept;

/// `rows` is one row or more.
void apply_filter(Filter filter, std::span<const std::byte> rows, const RowShape& shape,
                  std::vector<std::byte>& work, Filtered& out);
/// False when `in` cannot be what the filter made of rows of this size. Any bytes may be given.
[[nodiscard]] bool undo_filter(Filter filter, std::span<const std::byte> in, const RowShape& shape,
                               std::vector<std::byte>& work, std::span<std::byte> rows);

// One file each. `out` and `in` of planes are as long as the rows.
void planes_apply(std::span<const std::byte> rows, std::size_t element_bytes,
                  std::span<std::byte> out) noexcept;
void planes_undo(std::span<const std::byte> in, std::size_t element_bytes,
                 std::span<std::byte> rows) noexcept;

/// `out[c][r]` = `in[r][c]` for a matrix of bytes.
void transpose_bytes(std::span<const std::byte> in, std::size_t in_rows, std::size_t in_columns,
                     std::span<std::byte> out) noexcept;

void previous_apply(std::span<const std::byte> rows, std::size_t row_bytes,
                    std::span<std::byte> out) noexcept;
void previous_undo(std::span<std::byte> rows, std::size_t row_bytes) noexcept;

/// A head of one element per channel, then planes.
void centred_apply(std::span<const std::byte> rows, const RowShape& shape,
                   std::span<std::byte> out);
void centred_undo(std::span<const std::byte> in, const RowShape& shape,
                  std::span<std::byte> rows) noexcept;

/// Bytes of packed rows without their escapes.
[[nodiscard]] std::size_t packed_fixed_bytes(const RowShape& shape, std::size_t rows_bytes,
                                             unsigned width) noexcept;
void packed_apply(std::span<const std::byte> rows, const RowShape& shape, unsigned width,
                  std::vector<std::byte>& work, Filtered& out);
[[nodiscard]] bool packed_undo(std::span<const std::byte> in, const RowShape& shape, unsigned width,
                               std::vector<std::byte>& work, std::span<std::byte> rows);

}  // namespace esker::detail
