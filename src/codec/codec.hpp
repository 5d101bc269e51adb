#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/result.hpp>
#include <esker/snapshot_info.hpp>
#include <span>
#include <string_view>
#include <vector>

namespace esker::detail {

/// How the bytes of a row are to be seen; derived from the dtype's name and the plane, the same by
/// whoever encodes and whoever decodes.
struct RowShape {
  std::uint32_t row_bytes = 0;
  std::uint16_t element_bytes = 1;  ///< 2 for f16 and bf16, 34 for q8_0; 1 for what is unknown
  std::uint8_t exponent_bits = 0;   ///< of an IEEE-like element; 0: not a float
  Plane plane = Plane::key;

  [[nodiscard]] static RowShape of(std::string_view dtype, Plane plane, std::uint32_t row_bytes);
};

/// Stands in the frame of every chunk; doc/snapshot_format.md gives the numbers a meaning. All
/// zero: the rows as they are.
struct ChunkCoding {
  std::uint8_t compression = 0;  ///< esker::Compression
  std::uint8_t filter = 0;       ///< what was done to the bytes before; see filters.hpp
  std::uint8_t lossy = 0;        ///< esker::Lossy
  friend bool operator==(const ChunkCoding&, const ChunkCoding&) = default;
};

struct CodecChoice {
  Compression compression = Compression::lz4;
  int level = 0;
  Lossy lossy = Lossy::none;
};

/// What quantising cost, to be added up over chunks.
struct ErrorSums {
  double max_absolute = 0;
  double squared_error = 0;
  double squared = 0;
  std::uint64_t elements = 0;
  void add(const ErrorSums& other) noexcept;
};

/// Memory that one thread encodes or decodes with; grows to a few times the largest chunk.
struct CodecMemory {
  std::vector<std::byte> filtered;
  std::vector<std::byte> packed;
  std::vector<std::byte> work;
};

/// Encodes rows into `stored` (replaced), which is never longer than the rows: what does not shrink
/// is stored raw. Of `filter` codes the best is found by coding a sample. Lossy coding is refused
/// for dtypes that are no floats (`Errc::invalid`), and rows with a non-finite element are coded
/// exactly.
[[nodiscard]] Result<ChunkCoding> encode_chunk(std::span<const std::byte> rows,
                                               const RowShape& shape, const CodecChoice& choice,
                                               CodecMemory& memory, std::vector<std::byte>& stored,
                                               ErrorSums* error = nullptr);

/// Decodes into exactly `rows.size()` bytes, a multiple of the row. `Errc::corrupt` when `stored`
/// is not exactly that; `what` names the chunk in the message. Never reads or writes outside, never
/// allocates more than a few times `rows.size()`, whatever `stored` holds.
[[nodiscard]] Result<void> decode_chunk(const ChunkCoding& coding, const RowShape& shape,
                                        std::span<const std::byte> stored,
                                        std::span<std::byte> rows, CodecMemory& memory,
                                        std::string_view what);

/// False for numbers that this version does not know: they are refused by name before decoding.
[[nodiscard]] bool known_coding(const ChunkCoding& coding, const RowShape& shape) noexcept;

}  // namespace esker::detail
