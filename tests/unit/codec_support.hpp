#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "codec/codec.hpp"
#include "codec/compress.hpp"
#include "codec/filters.hpp"
#include "codec/float_bits.hpp"

namespace esker::test {

using Bytes = std::vector<std::byte>;

enum class Content { garbage, bell, zeros, repeated };

inline Bytes garbage(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes made(bytes);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random());
  return made;
}

/// Numbers as caches hold them: bell curves, each channel with a width and a mean of its own.
template <class Bits>
Bytes bell(std::size_t elements, std::size_t channels, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  using Word = typename Bits::Word;
  Bytes made(elements * sizeof(Word));
  for (std::size_t i = 0; i < elements; ++i) {
    const std::size_t channel = i % channels;
    const float width = std::exp2(static_cast<float>(channel % 7) - 3);
    const float mean = channel % 5 == 0 ? 4 * width : 0;
    const Word word = Bits::from_float(mean + width * normal(random));
    std::memcpy(&made[i * sizeof word], &word, sizeof word);
  }
  return made;
}

inline Bytes rows_of(const detail::RowShape& shape, std::size_t count, Content content,
                     std::uint64_t seed) {
  const std::size_t bytes = count * shape.row_bytes;
  if (content == Content::zeros) return Bytes(bytes);
  if (content == Content::repeated) {
    const Bytes row = garbage(shape.row_bytes, seed);
    Bytes all;
    for (std::size_t i = 0; i < count; ++i) all.insert(all.end(), row.begin(), row.end());
    return all;
  }
  if (content == Content::garbage || shape.exponent_bits == 0) return garbage(bytes, seed);
  const std::size_t elements = bytes / shape.element_bytes;
  const std::size_t channels = shape.row_bytes / shape.element_bytes;
  if (shape.element_bytes == 4) return bell<detail::SingleBits>(elements, channels, seed);
  if (shape.exponent_bits == 5) return bell<detail::HalfBits>(elements, channels, seed);
  return bell<detail::BrainBits>(elements, channels, seed);
}

/// A chunk coded in one given way, whether it is the best or not.
struct Coded {
  detail::ChunkCoding coding;
  Bytes stored;
};

inline Coded code_with(detail::Filter filter, Compression compression, const Bytes& rows,
                       const detail::RowShape& shape) {
  Coded coded;
  coded.coding.filter = static_cast<std::uint8_t>(filter);
  Bytes bytes;
  Bytes work;
  detail::Filtered filtered{bytes};
  apply_filter(filter, rows, shape, work, filtered);
  if (compression == Compression::raw) {
    coded.stored = bytes;
    return coded;
  }
  const auto range = filtered_range(filter, shape, rows.size());
  const std::size_t prefix = range.least == range.most ? 0 : 4;
  coded.stored.resize(prefix + detail::compress_bound(bytes.size()));
  const std::size_t length = detail::compress({compression, 0, filter != detail::Filter::none},
                                              bytes, {filtered.part_end.data(), filtered.parts},
                                              std::span(coded.stored).subspan(prefix));
  const auto told = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(coded.stored.data(), &told, prefix);
  coded.stored.resize(prefix + length);
  coded.coding.compression = static_cast<std::uint8_t>(compression);
  return coded;
}

inline constexpr std::array all_compressions{Compression::raw, Compression::lz4, Compression::zstd};

inline std::vector<detail::Filter> filters_for(const detail::RowShape& shape) {
  std::vector<detail::Filter> fitting;
  for (std::uint8_t number = 0; number < detail::filter_count; ++number) {
    const auto filter = static_cast<detail::Filter>(number);
    if (filter_fits(filter, shape)) fitting.push_back(filter);
  }
  return fitting;
}

}  // namespace esker::test
