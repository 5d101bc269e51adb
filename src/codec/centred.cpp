#include <algorithm>
#include <cstring>
#include <limits>

#include "codec/filters.hpp"

namespace esker::detail {

namespace {

/// Rows that are looked at to learn what is usual: more change nothing.
constexpr std::size_t learn_rows = 128;

template <class Word>
Word load(const std::byte* from) noexcept {
  Word word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

template <class Word>
constexpr Word sign_bit = static_cast<Word>(Word{1} << (std::numeric_limits<Word>::digits - 1));

/// The usual sign of each channel above its mean magnitude, both as integers: the difference of two
/// magnitudes is about the logarithm of their quotient.
template <class Word>
void learn(std::span<const std::byte> rows, std::size_t channels, std::byte* head) {
  const std::size_t count = rows.size() / (channels * sizeof(Word));
  const std::size_t step = std::max<std::size_t>(1, count / learn_rows);
  const std::size_t looked_at = (count + step - 1) / step;
  std::vector<std::uint64_t> magnitudes(channels);
  std::vector<std::uint32_t> negatives(channels);
  for (std::size_t row = 0; row < count; row += step) {
    const std::byte* from = rows.data() + row * channels * sizeof(Word);
    for (std::size_t c = 0; c < channels; ++c) {
      const auto word = load<Word>(from + c * sizeof(Word));
      magnitudes[c] += word & static_cast<Word>(~sign_bit<Word>);
      negatives[c] += word >> (std::numeric_limits<Word>::digits - 1);
    }
  }
  for (std::size_t c = 0; c < channels; ++c) {
    auto usual = static_cast<Word>(magnitudes[c] / looked_at);
    if (2 * std::size_t{negatives[c]} > looked_at) usual |= sign_bit<Word>;
    std::memcpy(head + c * sizeof(Word), &usual, sizeof usual);
  }
}

/// One row into its places in the planes, which lie `plane_bytes` apart.
template <class Word>
void split_row(const std::byte* row, const std::byte* head, std::size_t channels, std::byte* out,
               std::size_t plane_bytes) noexcept {
  constexpr auto sign = sign_bit<Word>;
  for (std::size_t c = 0; c < channels; ++c) {
    const auto usual = load<Word>(head + c * sizeof(Word));
    const auto word = load<Word>(row + c * sizeof(Word));
    const auto magnitude = static_cast<Word>((word & ~sign) - (usual & ~sign)) & ~sign;
    const auto centred = static_cast<Word>(((word ^ usual) & sign) | magnitude);
    for (std::size_t plane = 0; plane < sizeof(Word); ++plane) {
      out[plane * plane_bytes + c] = static_cast<std::byte>(centred >> (8 * plane));
    }
  }
}

template <class Word>
void join_row(const std::byte* in, std::size_t plane_bytes, const std::byte* head,
              std::size_t channels, std::byte* row) noexcept {
  constexpr auto sign = sign_bit<Word>;
  for (std::size_t c = 0; c < channels; ++c) {
    const auto usual = load<Word>(head + c * sizeof(Word));
    Word centred = 0;
    for (std::size_t plane = 0; plane < sizeof(Word); ++plane) {
      const auto byte = std::to_integer<Word>(in[plane * plane_bytes + c]);
      centred = static_cast<Word>(centred | static_cast<Word>(byte << (8 * plane)));
    }
    const auto magnitude = static_cast<Word>(centred + usual) & ~sign;
    const auto word = static_cast<Word>(((centred ^ usual) & sign) | magnitude);
    std::memcpy(row + c * sizeof(Word), &word, sizeof word);
  }
}

template <class Word>
void apply(std::span<const std::byte> rows, std::size_t channels, std::span<std::byte> out) {
  const std::size_t elements = rows.size() / sizeof(Word);
  learn<Word>(rows, channels, out.data());
  std::byte* planes = out.data() + channels * sizeof(Word);
  for (std::size_t at = 0; at < elements; at += channels) {
    split_row<Word>(rows.data() + at * sizeof(Word), out.data(), channels, planes + at, elements);
  }
}

template <class Word>
void undo(std::span<const std::byte> in, std::size_t channels, std::span<std::byte> rows) noexcept {
  const std::size_t elements = rows.size() / sizeof(Word);
  const std::byte* planes = in.data() + channels * sizeof(Word);
  for (std::size_t at = 0; at < elements; at += channels) {
    join_row<Word>(planes + at, elements, in.data(), channels, rows.data() + at * sizeof(Word));
  }
}

}  // namespace

void centred_apply(std::span<const std::byte> rows, const RowShape& shape,
                   std::span<std::byte> out) {
  const std::size_t channels = shape.row_bytes / shape.element_bytes;
  if (shape.element_bytes == 2) return apply<std::uint16_t>(rows, channels, out);
  apply<std::uint32_t>(rows, channels, out);
}

void centred_undo(std::span<const std::byte> in, const RowShape& shape,
                  std::span<std::byte> rows) noexcept {
  const std::size_t channels = shape.row_bytes / shape.element_bytes;
  if (shape.element_bytes == 2) return undo<std::uint16_t>(in, channels, rows);
  undo<std::uint32_t>(in, channels, rows);
}

}  // namespace esker::detail
