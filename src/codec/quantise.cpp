#include "codec/quantise.hpp"

#include <cmath>
#include <limits>

#include "base/bytes.hpp"
#include "codec/float_bits.hpp"

namespace esker::detail {

namespace {

// Codes are 0…levels. In rows that turn with their position (RoPE) all codes are about as frequent;
// with 256 of them and their scales q8 would end above half of f16.
constexpr unsigned q8_levels = 191;
constexpr unsigned q4_levels = 15;

/// Elements that share a least value and a step. K: a channel of some tokens. V: some channels of a
/// token, or of a few where rows are short.
struct Groups {
  std::size_t rows = 0;
  std::size_t channels = 0;
  std::size_t group_rows = 0;
  std::size_t group_channels = 0;
  unsigned levels = 0;

  Groups(const RowShape& shape, Lossy lossy, std::size_t rows_bytes) noexcept
      : rows(rows_bytes / shape.row_bytes),
        channels(shape.row_bytes / shape.element_bytes),
        levels(lossy == Lossy::q8 ? q8_levels : q4_levels) {
    const std::size_t aim = lossy == Lossy::q8 ? 128 : 32;
    if (shape.plane == Plane::key) {
      group_rows = even_part(rows, aim);
      group_channels = 1;
    } else {
      group_channels = even_part(channels, aim);
      group_rows = std::max<std::size_t>(1, aim / group_channels);
    }
  }
  /// `whole` in parts of nearly the same length, none above `aim`.
  static std::size_t even_part(std::size_t whole, std::size_t aim) noexcept {
    return div_ceil(whole, std::max<std::size_t>(1, div_ceil(whole, aim)));
  }
  [[nodiscard]] std::size_t across() const noexcept { return div_ceil(channels, group_channels); }
  [[nodiscard]] std::size_t count() const noexcept { return div_ceil(rows, group_rows) * across(); }
  [[nodiscard]] std::size_t code_row_bytes() const noexcept {
    return levels == q8_levels ? channels : div_ceil(channels, 2);
  }
};

/// Least values and steps as bf16: all low bytes, then all high ones.
class Scales {
 public:
  static constexpr std::size_t bytes_each = 4;
  Scales(std::byte* bytes, std::size_t count) noexcept : bytes_(bytes), count_(count) {}
  void set(std::size_t group, std::uint16_t least, std::uint16_t step) noexcept {
    bytes_[group] = static_cast<std::byte>(least & 0xFFU);
    bytes_[count_ + group] = static_cast<std::byte>(step & 0xFFU);
    bytes_[2 * count_ + group] = static_cast<std::byte>(least >> 8);
    bytes_[3 * count_ + group] = static_cast<std::byte>(step >> 8);
  }

 private:
  std::byte* bytes_;
  std::size_t count_;
};

float scale_at(const std::byte* low, std::size_t to_high) noexcept {
  const auto bits =
      std::to_integer<std::uint32_t>(low[0]) | std::to_integer<std::uint32_t>(low[to_high]) << 8;
  return std::bit_cast<float>(bits << 16);
}

template <class Bits>
void load_row(const std::byte* row, std::size_t channels, float* __restrict out) noexcept {
  for (std::size_t c = 0; c < channels; ++c) {
    typename Bits::Word word = 0;
    std::memcpy(&word, row + c * sizeof word, sizeof word);
    out[c] = Bits::to_float(word);
  }
}

template <class Bits>
bool all_finite(std::span<const std::byte> rows) noexcept {
  bool finite = true;
  for (std::size_t i = 0; i < rows.size(); i += sizeof(typename Bits::Word)) {
    typename Bits::Word word = 0;
    std::memcpy(&word, rows.data() + i, sizeof word);
    finite &= (word & Bits::exponent_mask) != Bits::exponent_mask;
  }
  return finite;
}

/// What one band of `group_rows` rows needs, a number per channel.
struct Band {
  std::vector<float> values;
  std::vector<float> least;
  std::vector<float> most;
  std::vector<float> step;
  std::vector<std::uint8_t> codes;

  /// To decode, what the rows hold has no place here.
  Band(std::size_t channels, bool decodes)
      : values(decodes ? 0 : channels),
        least(channels),
        most(decodes ? 0 : channels),
        step(channels),
        codes(channels + 1) {}
};

template <class Bits>
void find_range(const std::byte* rows, std::size_t count, std::size_t channels,
                Band& band) noexcept {
  std::fill(band.least.begin(), band.least.end(), std::numeric_limits<float>::max());
  std::fill(band.most.begin(), band.most.end(), std::numeric_limits<float>::lowest());
  for (std::size_t row = 0; row < count; ++row) {
    load_row<Bits>(rows + row * channels * sizeof(typename Bits::Word), channels,
                   band.values.data());
    const float* __restrict values = band.values.data();
    float* __restrict least = band.least.data();
    float* __restrict most = band.most.data();
    for (std::size_t c = 0; c < channels; ++c) {
      least[c] = values[c] < least[c] ? values[c] : least[c];
      most[c] = values[c] > most[c] ? values[c] : most[c];
    }
  }
}

/// Writes the scales of a band's groups, and spreads them over their channels again, the step as
/// its inverse. False when a difference is not finite.
bool set_scales(const Groups& groups, Band& band, Scales& scales, std::size_t first_group) {
  for (std::size_t k = 0; k < groups.across(); ++k) {
    const std::size_t begin = k * groups.group_channels;
    const std::size_t end = std::min(begin + groups.group_channels, groups.channels);
    float least = band.least[begin];
    float most = band.most[begin];
    for (std::size_t c = begin + 1; c < end; ++c) {
      least = std::min(least, band.least[c]);
      most = std::max(most, band.most[c]);
    }
    const std::uint16_t stored_least = brain_at_most(least);
    const float base = BrainBits::to_float(stored_least);
    const float width = most - base;
    if (!std::isfinite(width)) return false;
    const std::uint16_t stored_step = brain_at_least(width / static_cast<float>(groups.levels));
    const float step = BrainBits::to_float(stored_step);
    if (!std::isfinite(step)) return false;
    scales.set(first_group + k, stored_least, stored_step);
    std::fill(band.least.begin() + static_cast<std::ptrdiff_t>(begin),
              band.least.begin() + static_cast<std::ptrdiff_t>(end), base);
    std::fill(band.step.begin() + static_cast<std::ptrdiff_t>(begin),
              band.step.begin() + static_cast<std::ptrdiff_t>(end), step > 0 ? 1 / step : 0);
  }
  return true;
}

void code_row(const Groups& groups, Band& band, std::byte* out) noexcept {
  const auto top = static_cast<float>(groups.levels);
  const float* __restrict values = band.values.data();
  const float* __restrict least = band.least.data();
  const float* __restrict inverse = band.step.data();
  std::uint8_t* __restrict codes = band.codes.data();
  for (std::size_t c = 0; c < groups.channels; ++c) {
    float code = (values[c] - least[c]) * inverse[c];
    code = code > 0 ? code : 0;  // also when it is no number
    code = code < top ? code : top;
    code += 0.5F;
    codes[c] = static_cast<std::uint8_t>(code);
  }
  if (groups.levels == q8_levels) {
    std::memcpy(out, band.codes.data(), groups.channels);
    return;
  }
  const std::size_t half = groups.code_row_bytes();
  band.codes[groups.channels] = 0;
  for (std::size_t i = 0; i < half; ++i) {
    out[i] = static_cast<std::byte>(band.codes[i] | (band.codes[half + i] << 4));
  }
}

template <class Bits>
bool quantise_all(std::span<const std::byte> rows, const Groups& groups, std::byte* out) {
  if (!all_finite<Bits>(rows)) return false;
  const std::size_t row_bytes = groups.channels * sizeof(typename Bits::Word);
  Scales scales(out, groups.count());
  std::byte* codes = out + groups.count() * Scales::bytes_each;
  Band band(groups.channels, false);
  std::size_t group = 0;
  for (std::size_t first = 0; first < groups.rows; first += groups.group_rows) {
    const std::size_t count = std::min(groups.group_rows, groups.rows - first);
    find_range<Bits>(rows.data() + first * row_bytes, count, groups.channels, band);
    if (!set_scales(groups, band, scales, group)) return false;
    group += groups.across();
    for (std::size_t row = first; row < first + count; ++row) {
      load_row<Bits>(rows.data() + row * row_bytes, groups.channels, band.values.data());
      code_row(groups, band, codes + row * groups.code_row_bytes());
    }
  }
  return true;
}

void read_scales(const Groups& groups, const std::byte* scales, std::size_t first_group,
                 Band& band) noexcept {
  const std::size_t count = groups.count();
  for (std::size_t k = 0; k < groups.across(); ++k) {
    const std::size_t begin = k * groups.group_channels;
    const std::size_t end = std::min(begin + groups.group_channels, groups.channels);
    const float least = scale_at(scales + first_group + k, 2 * count);
    const float step = scale_at(scales + count + first_group + k, 2 * count);
    for (std::size_t c = begin; c < end; ++c) {
      band.least[c] = least;
      band.step[c] = step;
    }
  }
}

template <class Bits>
void scale_codes(const Band& band, const std::uint8_t* __restrict codes, std::size_t channels,
                 std::byte* __restrict row) noexcept {
  const float* __restrict least = band.least.data();
  const float* __restrict step = band.step.data();
  for (std::size_t c = 0; c < channels; ++c) {
    // Two roundings, never one: the file is compiled without contraction.
    const float offset = step[c] * static_cast<float>(codes[c]);
    const auto word = Bits::from_float(least[c] + offset);
    std::memcpy(row + c * sizeof word, &word, sizeof word);
  }
}

template <class Bits>
void decode_row(const Groups& groups, Band& band, const std::byte* in, std::byte* row) noexcept {
  const auto* codes = reinterpret_cast<const std::uint8_t*>(in);
  if (groups.levels != q8_levels) {
    const std::size_t half = groups.code_row_bytes();
    for (std::size_t i = 0; i < half; ++i) band.codes[i] = codes[i] & 0xFU;
    for (std::size_t i = half; i < groups.channels; ++i) band.codes[i] = codes[i - half] >> 4;
    codes = band.codes.data();
  }
  scale_codes<Bits>(band, codes, groups.channels, row);
}

template <class Bits>
void dequantise_all(std::span<const std::byte> in, const Groups& groups, std::byte* rows) {
  const std::size_t row_bytes = groups.channels * sizeof(typename Bits::Word);
  const std::byte* codes = in.data() + groups.count() * Scales::bytes_each;
  Band band(groups.channels, true);
  std::size_t group = 0;
  for (std::size_t row = 0; row < groups.rows; ++row) {
    if (row % groups.group_rows == 0) {
      read_scales(groups, in.data(), group, band);
      group += groups.across();
    }
    decode_row<Bits>(groups, band, codes + row * groups.code_row_bytes(), rows + row * row_bytes);
  }
}

template <class Bits>
ErrorSums measure_all(std::span<const std::byte> exact, std::span<const std::byte> decoded) {
  ErrorSums sums;
  constexpr std::size_t stride = sizeof(typename Bits::Word);
  for (std::size_t at = 0; at < exact.size(); at += stride) {
    float before = 0;
    float after = 0;
    load_row<Bits>(exact.data() + at, 1, &before);
    load_row<Bits>(decoded.data() + at, 1, &after);
    if (!std::isfinite(before)) continue;
    ++sums.elements;
    const double error = std::abs(double{after} - double{before});
    sums.max_absolute = std::max(sums.max_absolute, error);
    sums.squared_error += error * error;
    sums.squared += double{before} * double{before};
  }
  return sums;
}

template <class Run>
auto with_bits(const RowShape& shape, Run run) {
  if (shape.element_bytes == 4) return run(SingleBits{});
  if (shape.exponent_bits == 5) return run(HalfBits{});
  return run(BrainBits{});
}

}  // namespace

bool can_quantise(const RowShape& shape) noexcept { return shape.exponent_bits != 0; }

std::size_t quantised_bytes(const RowShape& shape, Lossy lossy, std::size_t rows_bytes) noexcept {
  const Groups groups(shape, lossy, rows_bytes);
  return groups.count() * Scales::bytes_each + groups.rows * groups.code_row_bytes();
}

bool quantise(std::span<const std::byte> rows, const RowShape& shape, Lossy lossy, Filtered& out) {
  const Groups groups(shape, lossy, rows.size());
  out.bytes.resize(quantised_bytes(shape, lossy, rows.size()));
  out.end_part(2 * groups.count());
  out.end_part(4 * groups.count());
  out.end_part(out.bytes.size());
  return with_bits(shape, [&](auto bits) {
    return quantise_all<decltype(bits)>(rows, groups, out.bytes.data());
  });
}

void dequantise(std::span<const std::byte> in, const RowShape& shape, Lossy lossy,
                std::span<std::byte> rows) {
  const Groups groups(shape, lossy, rows.size());
  with_bits(shape, [&](auto bits) { dequantise_all<decltype(bits)>(in, groups, rows.data()); });
}

ErrorSums measure(std::span<const std::byte> exact, std::span<const std::byte> decoded,
                  const RowShape& shape) noexcept {
  return with_bits(shape, [&](auto bits) { return measure_all<decltype(bits)>(exact, decoded); });
}

ErrorSums exact_sums(std::span<const std::byte> rows, const RowShape& shape) noexcept {
  return measure(rows, rows, shape);
}

}  // namespace esker::detail
