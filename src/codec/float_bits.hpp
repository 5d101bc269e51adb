#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace esker::detail {

// Floats of rows as C++ floats and back, in integer arithmetic that vectorises and comes out the
// same on every machine. Back means: to the nearest, ties to even; above the largest finite number,
// and for what is no number, the largest finite one.

inline constexpr std::uint32_t float_magnitude = 0x7FFFFFFF;

struct HalfBits {
  using Word = std::uint16_t;
  static constexpr Word exponent_mask = 0x7C00;

  static float to_float(Word half) noexcept {
    // As a float the bits stand for 2^-112 of the number.
    const auto small = std::bit_cast<float>((std::uint32_t{half} & 0x7FFFU) << 13);
    const auto magnitude = std::bit_cast<std::uint32_t>(small * 0x1p112F);
    return std::bit_cast<float>(magnitude | (std::uint32_t{half} & 0x8000U) << 16);
  }
  static Word from_float(float value) noexcept {
    constexpr std::int32_t bias = 112 << 23;
    constexpr std::int32_t least_normal = bias + (1 << 23);
    constexpr std::int32_t largest = 0x7BFF;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto magnitude = static_cast<std::int32_t>(bits & float_magnitude);
    // Adding 0.5 leaves a subnormal half in the last bits of the sum, rounded.
    const auto small = std::bit_cast<float>(smaller(magnitude, least_normal));
    const std::int32_t below =
        std::bit_cast<std::int32_t>(small + 0.5F) - std::bit_cast<std::int32_t>(0.5F);
    const std::int32_t rounded =
        (smaller(magnitude, 0x47800000) - bias + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
    const std::int32_t above = smaller(rounded, largest);
    const std::int32_t is_below = -static_cast<std::int32_t>(magnitude < least_normal);
    const std::int32_t half = (below & is_below) | (above & ~is_below);
    return static_cast<Word>(static_cast<std::uint32_t>(half) | ((bits >> 16) & 0x8000U));
  }

 private:
  // With masks: of a choice the vectoriser would see a branch.
  static constexpr std::int32_t smaller(std::int32_t a, std::int32_t b) noexcept {
    const std::int32_t is_a = -static_cast<std::int32_t>(a < b);
    return (a & is_a) | (b & ~is_a);
  }
};

struct BrainBits {
  using Word = std::uint16_t;
  static constexpr Word exponent_mask = 0x7F80;

  static float to_float(Word brain) noexcept {
    return std::bit_cast<float>(std::uint32_t{brain} << 16);
  }
  static Word from_float(float value) noexcept {
    constexpr std::uint32_t largest = 0x7F7F;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & float_magnitude;
    const std::uint32_t rounded = (magnitude + 0x7FFFU + ((magnitude >> 16) & 1U)) >> 16;
    return static_cast<Word>(std::min(rounded, largest) | ((bits >> 16) & 0x8000U));
  }
};

struct SingleBits {
  using Word = std::uint32_t;
  static constexpr Word exponent_mask = 0x7F800000;

  static float to_float(Word single) noexcept { return std::bit_cast<float>(single); }
  static Word from_float(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return std::min(bits & float_magnitude, 0x7F7FFFFFU) | (bits & ~float_magnitude);
  }
};

/// A bf16 that is not above `value`, which is finite.
inline std::uint16_t brain_at_most(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool away = (bits >> 31) != 0 && (bits & 0xFFFFU) != 0;
  return static_cast<std::uint16_t>((bits >> 16) + (away ? 1U : 0U));
}

/// A bf16 that is not below `value`, which is finite and not negative.
inline std::uint16_t brain_at_least(float value) noexcept {
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0xFFFFU) >> 16);
}

}  // namespace esker::detail
