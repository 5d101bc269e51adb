#pragma once

#include <cstddef>
#include <cstdint>

namespace esker::detail {

// Small numbers, `count` to a group (a multiple of 8), as bits. A byte holds numbers that lie far
// from each other, so that whole vectors of neighbours are shifted alike: with 4 bits, byte i holds
// number i below and number count/2 + i above; with 3 bits, the low two bits of numbers i,
// count/4 + i, … stand in byte i, and after these the third bits of i, count/8 + i, …

constexpr std::size_t bit_group_bytes(std::size_t count, unsigned width) noexcept {
  return count / 8 * width;
}

template <unsigned bits>
void pack_bits(const std::uint8_t* numbers, std::size_t count, unsigned from_bit,
               std::uint8_t* out) noexcept {
  constexpr std::size_t per_byte = 8 / bits;
  constexpr unsigned mask = (1U << bits) - 1;
  const std::size_t bytes = count / per_byte;
  for (std::size_t i = 0; i < bytes; ++i) {
    unsigned byte = 0;
    for (std::size_t k = 0; k < per_byte; ++k) {
      byte |= ((unsigned{numbers[k * bytes + i]} >> from_bit) & mask) << (k * bits);
    }
    out[i] = static_cast<std::uint8_t>(byte);
  }
}

/// Puts the bits over those that are there when `from_bit` is not 0.
template <unsigned bits>
void unpack_bits(const std::uint8_t* in, std::size_t count, unsigned from_bit,
                 std::uint8_t* numbers) noexcept {
  constexpr std::size_t per_byte = 8 / bits;
  constexpr unsigned mask = (1U << bits) - 1;
  const std::size_t bytes = count / per_byte;
  for (std::size_t k = 0; k < per_byte; ++k) {
    std::uint8_t* to = numbers + k * bytes;
    for (std::size_t i = 0; i < bytes; ++i) {
      const auto value = static_cast<std::uint8_t>(((in[i] >> (k * bits)) & mask) << from_bit);
      to[i] = from_bit == 0 ? value : static_cast<std::uint8_t>(to[i] | value);
    }
  }
}

template <unsigned width>
void pack_group(const std::uint8_t* numbers, std::size_t count, std::uint8_t* out) noexcept {
  static_assert(width == 3 || width == 4);
  if constexpr (width == 4) return pack_bits<4>(numbers, count, 0, out);
  pack_bits<2>(numbers, count, 0, out);
  pack_bits<1>(numbers, count, 2, out + count / 4);
}

template <unsigned width>
void unpack_group(const std::uint8_t* in, std::size_t count, std::uint8_t* numbers) noexcept {
  static_assert(width == 3 || width == 4);
  if constexpr (width == 4) return unpack_bits<4>(in, count, 0, numbers);
  unpack_bits<2>(in, count, 0, numbers);
  unpack_bits<1>(in + count / 4, count, 2, numbers);
}

}  // namespace esker::detail
