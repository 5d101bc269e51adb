#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace esker::detail {

// Groups of numbers of 3 or 4 bits. A group of `count` numbers, a multiple of 8, is seen as 8 runs
// of count/8; what is packed is as many areas of count/8 bytes as numbers have bits. Byte i of the
// areas holds the i-th number of all runs: so words of eight bytes hold 64 numbers, and each run's
// eight lie under each other, ready to be shifted out together.

using Runs = std::array<std::uint64_t, 8>;  ///< eight numbers of each run, a byte each

template <unsigned width>
using Areas = std::array<std::uint64_t, width>;

constexpr std::size_t bit_group_bytes(std::size_t count, unsigned width) noexcept {
  return count / 8 * width;
}

constexpr std::uint64_t each_byte(std::uint8_t value) noexcept {
  return 0x0101010101010101U * value;
}

/// With 3 bits: area 0 has the low two bits of runs 0, 2, 4, 6 from bit 0 on, area 1 those of runs
/// 1, 3, 5, 7, area 2 the third bit of run k as bit k. With 4: area k has run k below, 4 + k above.
template <unsigned width>
constexpr Areas<width> gather(const Runs& runs) noexcept {
  static_assert(width == 3 || width == 4);
  Areas<width> areas{};
  for (unsigned k = 0; k < 8; ++k) {
    if constexpr (width == 3) {
      areas[k % 2] |= (runs[k] & each_byte(3)) << (k / 2 * 2);
      areas[2] |= ((runs[k] >> 2) & each_byte(1)) << k;
    } else {
      areas[k % 4] |= (runs[k] & each_byte(15)) << (k / 4 * 4);
    }
  }
  return areas;
}

template <unsigned width>
constexpr Runs spread(const Areas<width>& areas) noexcept {
  static_assert(width == 3 || width == 4);
  Runs runs{};
  for (unsigned k = 0; k < 8; ++k) {
    if constexpr (width == 3) {
      const std::uint64_t third = (areas[2] >> k) & each_byte(1);
      runs[k] = ((areas[k % 2] >> (k / 2 * 2)) & each_byte(3)) | (third << 2);
    } else {
      runs[k] = (areas[k % 4] >> (k / 4 * 4)) & each_byte(15);
    }
  }
  return runs;
}

/// Bit k of byte i is set where the i-th number of run k has all its bits.
template <unsigned width>
constexpr std::uint64_t full_numbers(const Areas<width>& areas) noexcept {
  static_assert(width == 3 || width == 4);
  std::uint64_t full = 0;
  if constexpr (width == 3) {
    const std::uint64_t even = areas[0] & (areas[0] >> 1) & each_byte(0x55);
    const std::uint64_t odd = areas[1] & (areas[1] >> 1) & each_byte(0x55);
    full = (even | (odd << 1)) & areas[2];
  } else {
    for (unsigned k = 0; k < 4; ++k) {
      const std::uint64_t pairs = areas[k] & (areas[k] >> 1);
      full |= (pairs & (pairs >> 2) & each_byte(0x11)) << k;
    }
  }
  return full;
}

/// Words of `count` bytes, less than eight at the end of a run, that lie `stride` apart.
template <std::size_t words>
std::array<std::uint64_t, words> load_words(const std::uint8_t* from, std::size_t stride,
                                            std::size_t count) noexcept {
  std::array<std::uint64_t, words> loaded{};
  for (std::size_t k = 0; k < words; ++k) std::memcpy(&loaded[k], from + k * stride, count);
  return loaded;
}

template <std::size_t words>
void store_words(const std::array<std::uint64_t, words>& stored, std::uint8_t* to,
                 std::size_t stride, std::size_t count) noexcept {
  for (std::size_t k = 0; k < words; ++k) std::memcpy(to + k * stride, &stored[k], count);
}

/// Calls `run(place, bytes)` for the places of a run of `length`; `bytes` is a constant 8 but for
/// the last.
template <class Run>
void for_places(std::size_t length, Run run) noexcept {
  std::size_t place = 0;
  for (; place + 8 <= length; place += 8) run(place, std::integral_constant<std::size_t, 8>{});
  if (place < length) run(place, length - place);
}

template <unsigned width>
void pack_group(const std::uint8_t* numbers, std::size_t count, std::uint8_t* out) noexcept {
  const std::size_t length = count / 8;
  for_places(length, [&](std::size_t place, auto bytes) {
    const Runs runs = load_words<8>(numbers + place, length, bytes);
    store_words(gather<width>(runs), out + place, length, bytes);
  });
}

template <unsigned width>
void unpack_group(const std::uint8_t* in, std::size_t count, std::uint8_t* numbers) noexcept {
  const std::size_t length = count / 8;
  for_places(length, [&](std::size_t place, auto bytes) {
    const Areas<width> areas = load_words<width>(in + place, length, bytes);
    store_words(spread<width>(areas), numbers + place, length, bytes);
  });
}

/// Calls `run(index)` for the numbers of a packed group that have all their bits, by place, then by
/// run, and `enough(full_numbers)` before those of eight places. False as soon as that is.
template <unsigned width, class Enough, class Run>
bool for_full(const std::uint8_t* in, std::size_t count, Enough enough, Run run) noexcept {
  const std::size_t length = count / 8;
  bool good = true;
  for_places(length, [&](std::size_t place, auto bytes) {
    std::uint64_t full = full_numbers<width>(load_words<width>(in + place, length, bytes));
    good = good && enough(full);
    if (!good) return;
    for (; full != 0; full &= full - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(full));
      run(bit % 8 * length + place + bit / 8);
    }
  });
  return good;
}

}  // namespace esker::detail
