#include <cstring>

#include "codec/chunk_shape.hpp"
#include "codec/codec.hpp"
#include "codec/compress.hpp"
#include "codec/filters.hpp"
#include "codec/quantise.hpp"

namespace esker::detail {

namespace {

/// The bytes before they were compressed: where they are, or in `room`. Nothing when `stored` is
/// not what a writer makes.
std::optional<std::span<const std::byte>> unpacked(Compression compression, FilteredRange range,
                                                   std::span<const std::byte> stored,
                                                   std::vector<std::byte>& room) {
  if (compression == Compression::raw) return stored;
  std::size_t bytes = range.most;
  if (range.least != range.most) {
    std::uint32_t told = 0;
    if (stored.size() < sizeof told) return std::nullopt;
    std::memcpy(&told, stored.data(), sizeof told);
    if (told < range.least || told > range.most) return std::nullopt;
    bytes = told;
    stored = stored.subspan(sizeof told);
  }
  room.resize(bytes);
  if (!decompress(compression, stored, room)) return std::nullopt;
  return room;
}

bool decode(const ChunkCoding& coding, const RowShape& shape, std::span<const std::byte> stored,
            std::span<std::byte> rows, CodecMemory& memory) {
  const auto compression = static_cast<Compression>(coding.compression);
  const auto filter = static_cast<Filter>(coding.filter);
  const auto lossy = static_cast<Lossy>(coding.lossy);
  if (rows.empty()) return stored.empty();
  if (lossy == Lossy::none && filter == Filter::none) return decompress(compression, stored, rows);
  FilteredRange range;
  if (lossy != Lossy::none) {
    range.least = range.most = quantised_bytes(shape, lossy, rows.size());
  } else {
    range = filtered_range(filter, shape, rows.size());
  }
  const auto bytes = unpacked(compression, range, stored, memory.filtered);
  if (!bytes) return false;
  if (lossy == Lossy::none) return undo_filter(filter, *bytes, shape, memory.work, rows);
  if (bytes->size() != range.most) return false;
  dequantise(*bytes, shape, lossy, rows);
  return true;
}

}  // namespace

Result<void> decode_chunk(const ChunkCoding& coding, const RowShape& given,
                          std::span<const std::byte> stored, std::span<std::byte> rows,
                          CodecMemory& memory, std::string_view what) {
  if (auto good = check_rows(rows.size(), given); !good) return good;
  if (!known_coding(coding, given)) {
    return fail(Errc::incompatible,
                std::string(what) + ": compression " + std::to_string(coding.compression) +
                    ", filter " + std::to_string(coding.filter) + ", lossy " +
                    std::to_string(coding.lossy) +
                    " is a coding that this version does not know; use a newer one");
  }
  if (decode(coding, usable_shape(given), stored, rows, memory)) return {};
  return fail(Errc::corrupt, std::string(what) + ": its " + std::to_string(stored.size()) +
                                 " stored bytes do not decode to " + std::to_string(rows.size()) +
                                 "; the file is damaged");
}

}  // namespace esker::detail
