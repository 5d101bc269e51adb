#include "codec/codec.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "codec/compress.hpp"
#include "codec/filters.hpp"

namespace esker::detail {

void ErrorSums::add(const ErrorSums& other) noexcept {
  max_absolute = std::max(max_absolute, other.max_absolute);
  squared_error += other.squared_error;
  squared += other.squared;
  elements += other.elements;
}

bool known_coding(const ChunkCoding& coding, const RowShape& /*shape*/) noexcept {
  if (coding == ChunkCoding{}) return true;
  return (coding.compression == 1 || coding.compression == 2) && coding.filter <= 1 &&
         coding.lossy == 0;
}

Result<ChunkCoding> encode_chunk(std::span<const std::byte> rows, const RowShape& shape,
                                 const CodecChoice& choice, CodecMemory& memory,
                                 std::vector<std::byte>& stored, ErrorSums* /*error*/) {
  ChunkCoding coding;
  if (choice.lossy != Lossy::none) {
    return fail(Errc::invalid, "lossy coding is not there yet; export without --lossy");
  }
  if (choice.compression != Compression::raw && !rows.empty()) {
    std::span<const std::byte> from = rows;
    if (shape.element_bytes > 1) {
      memory.filtered.resize(rows.size());
      planes_apply(rows, shape.element_bytes, memory.filtered);
      from = memory.filtered;
      coding.filter = static_cast<std::uint8_t>(Filter::planes);
    }
    stored.resize(compress_bound(rows.size()));
    const std::size_t length = compress(choice.compression, choice.level, from, stored);
    if (length != 0) {
      stored.resize(length);
      coding.compression = static_cast<std::uint8_t>(choice.compression);
      return coding;
    }
  }
  stored.assign(rows.begin(), rows.end());
  return ChunkCoding{};
}

Result<void> decode_chunk(const ChunkCoding& coding, const RowShape& shape,
                          std::span<const std::byte> stored, std::span<std::byte> rows,
                          CodecMemory& memory, std::string_view what) {
  if (!known_coding(coding, shape)) {
    return fail(Errc::incompatible,
                std::string(what) + ": coded in a way that this version does not know");
  }
  const bool filtered = coding.filter != 0;
  if (filtered) memory.filtered.resize(rows.size());
  const std::span<std::byte> to = filtered ? std::span<std::byte>(memory.filtered) : rows;
  if (!decompress(static_cast<Compression>(coding.compression), stored, to)) {
    return fail(Errc::corrupt, std::string(what) + ": its " + std::to_string(stored.size()) +
                                   " stored bytes do not decode to " + std::to_string(rows.size()));
  }
  if (filtered) planes_undo(to, shape.element_bytes, rows);
  return {};
}

}  // namespace esker::detail
