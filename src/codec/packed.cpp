#include <algorithm>
#include <cstring>
#include <limits>

#include "base/bytes.hpp"
#include "codec/bit_groups.hpp"
#include "codec/filters.hpp"

namespace esker::detail {

namespace {

/// Where the parts of packed rows lie. Elements are packed in groups: a row each where that is wide
/// enough for vectors, so that equal rows look equal to the compressor behind.
struct Layout {
  std::size_t elements = 0;
  std::size_t group = 0;  ///< elements of all groups but the last
  std::size_t bases = 0;  ///< in the head: one per channel, or one for all
  std::size_t symbols_at = 0;
  std::size_t high_at = 0;
  std::size_t low_at = 0;
  std::size_t escapes_at = 0;
};

constexpr std::size_t flat_group = 1024;
constexpr std::size_t narrowest_row = 64;
constexpr unsigned high_width = 3;

constexpr unsigned rest_bits(const RowShape& shape) noexcept {
  return shape.element_bytes * 8U - shape.exponent_bits;
}

Layout layout_of(const RowShape& shape, std::size_t rows_bytes, unsigned width) noexcept {
  const std::size_t channels = shape.row_bytes / shape.element_bytes;
  const bool by_row = channels >= narrowest_row && channels % 8 == 0;
  Layout layout;
  layout.elements = rows_bytes / shape.element_bytes;
  layout.group = by_row ? channels : flat_group;
  layout.bases = by_row ? channels : 1;
  const std::size_t padded = align_up(layout.elements, 8);
  layout.symbols_at = layout.bases;
  layout.high_at = layout.symbols_at + bit_group_bytes(padded, width);
  layout.low_at = layout.high_at;
  if (rest_bits(shape) % 8 != 0) layout.low_at += bit_group_bytes(padded, high_width);
  layout.escapes_at = layout.low_at + layout.elements * (rest_bits(shape) / 8);
  return layout;
}

/// A float in its three pieces: the exponent, and the sign above the mantissa, of which bits beyond
/// whole bytes are the "high" ones.
template <class Word, unsigned exponent_width>
struct Form {
  using Type = Word;
  static constexpr unsigned mantissa = std::numeric_limits<Word>::digits - 1 - exponent_width;
  static constexpr unsigned low_bytes = (mantissa + 1) / 8;
  static constexpr bool has_high = (mantissa + 1) % 8 != 0;
  static_assert(!has_high || (mantissa + 1) % 8 == high_width);
  static constexpr std::uint8_t exponent_mask = (1U << exponent_width) - 1;
  static constexpr Word mantissa_mask = static_cast<Word>((Word{1} << mantissa) - 1);

  static Word load(const std::byte* rows, std::size_t index) noexcept {
    Word word = 0;
    std::memcpy(&word, rows + index * sizeof word, sizeof word);
    return word;
  }
  static std::uint8_t exponent(Word word) noexcept {
    return static_cast<std::uint8_t>(word >> mantissa) & exponent_mask;
  }
  static Word rest(Word word) noexcept {
    const auto sign = static_cast<Word>(word >> (std::numeric_limits<Word>::digits - 1));
    return static_cast<Word>((word & mantissa_mask) | static_cast<Word>(sign << mantissa));
  }
  static Word join(std::uint8_t exponent, Word rest) noexcept {
    const auto sign = static_cast<Word>(rest >> mantissa);
    return static_cast<Word>((rest & mantissa_mask) |
                             static_cast<Word>(Word{exponent} << mantissa) |
                             static_cast<Word>(sign << (std::numeric_limits<Word>::digits - 1)));
  }
};

/// Room for one group of everything.
struct Scratch {
  std::uint8_t* bases;
  std::uint8_t* symbols;
  std::uint8_t* exponents;
  std::uint8_t* high;

  Scratch(std::vector<std::byte>& work, std::size_t group) {
    work.resize(4 * group);
    bases = reinterpret_cast<std::uint8_t*>(work.data());
    symbols = bases + group;
    exponents = symbols + group;
    high = exponents + group;
  }
};

std::uint8_t* numbers(std::byte* bytes) noexcept { return reinterpret_cast<std::uint8_t*>(bytes); }
const std::uint8_t* numbers(const std::byte* bytes) noexcept {
  return reinterpret_cast<const std::uint8_t*>(bytes);
}

/// How often each exponent was met. Only those between the least and the largest are looked at.
struct Met {
  std::array<std::uint32_t, 256> times{};
  std::size_t least = 255;
  std::size_t largest = 0;

  void add(std::uint8_t exponent) noexcept {
    ++times[exponent];
    least = std::min<std::size_t>(least, exponent);
    largest = std::max<std::size_t>(largest, exponent);
  }
  void clear() noexcept {
    std::fill(times.begin() + static_cast<std::ptrdiff_t>(least),
              times.begin() + static_cast<std::ptrdiff_t>(largest) + 1, 0U);
    least = 255;
    largest = 0;
  }
  /// The upper end of the `window` neighbouring exponents that are most often met.
  [[nodiscard]] std::uint8_t best_base(std::size_t window) const noexcept {
    std::uint64_t inside = 0;
    std::uint64_t most = 0;
    std::size_t best = largest;
    for (std::size_t top = least; top <= largest; ++top) {
      inside += times[top];
      if (top >= least + window) inside -= times[top - window];
      if (inside < most) continue;
      most = inside;
      best = top;
    }
    return static_cast<std::uint8_t>(best);
  }
};

/// Learns the bases from some of the rows; those of a few more would be hardly better.
template <class F>
void learn(std::span<const std::byte> rows, const Layout& layout, std::size_t window,
           std::uint8_t* bases) noexcept {
  const std::size_t count = layout.elements / layout.bases;
  const std::size_t looked_at = std::clamp<std::size_t>(count / 8, 16, 64);
  const std::size_t step = std::max<std::size_t>(1, count / looked_at) * layout.bases;
  Met met;
  for (std::size_t c = 0; c < layout.bases; ++c) {
    for (std::size_t i = c; i < layout.elements; i += step) {
      met.add(F::exponent(F::load(rows.data(), i)));
    }
    bases[c] = met.best_base(window);
    met.clear();
  }
}

/// Cuts the elements of a group into their pieces. Pieces never lie in each other or in the rows.
template <class F>
void cut(const std::byte* rows, std::size_t count, std::uint8_t escape, Scratch scratch,
         std::uint8_t* low, std::size_t plane_bytes) noexcept {
  const std::uint8_t* __restrict bases = scratch.bases;
  std::uint8_t* __restrict exponents = scratch.exponents;
  std::uint8_t* __restrict symbols = scratch.symbols;
  for (std::size_t i = 0; i < count; ++i) exponents[i] = F::exponent(F::load(rows, i));
  for (std::size_t i = 0; i < count; ++i) {
    const auto below = static_cast<std::uint8_t>((bases[i] - exponents[i]) & F::exponent_mask);
    symbols[i] = below < escape ? below : escape;
  }
  if constexpr (F::has_high) {
    std::uint8_t* __restrict high = scratch.high;
    for (std::size_t i = 0; i < count; ++i) {
      high[i] = static_cast<std::uint8_t>(F::rest(F::load(rows, i)) >> 8);
    }
  }
  for (unsigned plane = 0; plane < F::low_bytes; ++plane) {
    std::uint8_t* __restrict to = low + plane * plane_bytes;
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = static_cast<std::uint8_t>(F::rest(F::load(rows, i)) >> (8 * plane));
    }
  }
}

template <class F, unsigned width>
void apply(std::span<const std::byte> rows, const Layout& layout, Scratch scratch, Filtered& out) {
  constexpr std::uint8_t escape = (1U << width) - 1;
  const std::size_t most = layout.escapes_at + layout.elements;
  out.bytes.resize(most);
  std::uint8_t* to = numbers(out.bytes.data());
  std::uint8_t* escapes = to + layout.escapes_at;
  learn<F>(rows, layout, escape, to);
  for (std::size_t i = 0; i < layout.group; ++i) scratch.bases[i] = to[layout.bases == 1 ? 0 : i];
  for (std::size_t first = 0; first < layout.elements; first += layout.group) {
    const std::size_t count = std::min(layout.group, layout.elements - first);
    const std::size_t padded = align_up(count, 8);
    std::fill(scratch.symbols + count, scratch.symbols + padded, std::uint8_t{0});
    std::fill(scratch.high + count, scratch.high + padded, std::uint8_t{0});
    cut<F>(rows.data() + first * sizeof(typename F::Type), count, escape, scratch,
           to + layout.low_at + first, layout.elements);
    std::uint8_t* symbols = to + layout.symbols_at + bit_group_bytes(first, width);
    pack_group<width>(scratch.symbols, padded, symbols);
    if constexpr (F::has_high) {
      pack_group<high_width>(scratch.high, padded,
                             to + layout.high_at + bit_group_bytes(first, high_width));
    }
    for_full<width>(
        symbols, padded, [](std::uint64_t) { return true; },
        [&](std::size_t index) { *escapes++ = scratch.exponents[index]; });
  }
  out.bytes.resize(static_cast<std::size_t>(escapes - to));
}

template <class F>
void join(Scratch scratch, const std::uint8_t* low, std::size_t plane_bytes, std::size_t count,
          std::byte* __restrict rows) noexcept {
  using Word = typename F::Type;
  const std::uint8_t* __restrict exponents = scratch.exponents;
  const std::uint8_t* __restrict high = scratch.high;
  for (std::size_t i = 0; i < count; ++i) {
    Word rest = 0;
    for (unsigned plane = 0; plane < F::low_bytes; ++plane) {
      rest = static_cast<Word>(
          rest | static_cast<Word>(Word{low[plane * plane_bytes + i]} << (8 * plane)));
    }
    if constexpr (F::has_high)
      rest = static_cast<Word>(rest | static_cast<Word>(Word{high[i]} << 8));
    const Word word = F::join(exponents[i], rest);
    std::memcpy(rows + i * sizeof word, &word, sizeof word);
  }
}

void subtract(Scratch scratch, std::size_t count, std::uint8_t mask) noexcept {
  const std::uint8_t* __restrict bases = scratch.bases;
  const std::uint8_t* __restrict symbols = scratch.symbols;
  std::uint8_t* __restrict exponents = scratch.exponents;
  for (std::size_t i = 0; i < count; ++i) {
    exponents[i] = static_cast<std::uint8_t>((bases[i] - symbols[i]) & mask);
  }
}

template <class F, unsigned width>
bool undo(std::span<const std::byte> in, const Layout& layout, Scratch scratch,
          std::span<std::byte> rows) noexcept {
  const std::uint8_t* from = numbers(in.data());
  const std::uint8_t* escapes = from + layout.escapes_at;
  const std::uint8_t* end = from + in.size();
  for (std::size_t i = 0; i < layout.group; ++i) scratch.bases[i] = from[layout.bases == 1 ? 0 : i];
  for (std::size_t first = 0; first < layout.elements; first += layout.group) {
    const std::size_t count = std::min(layout.group, layout.elements - first);
    const std::size_t padded = align_up(count, 8);
    const std::uint8_t* symbols = from + layout.symbols_at + bit_group_bytes(first, width);
    unpack_group<width>(symbols, padded, scratch.symbols);
    subtract(scratch, padded, F::exponent_mask);
    const bool enough = for_full<width>(
        symbols, padded,
        [&](std::uint64_t full) {
          const auto left = static_cast<std::size_t>(end - escapes);
          return left >= 64 || static_cast<std::size_t>(std::popcount(full)) <= left;
        },
        [&](std::size_t index) { scratch.exponents[index] = *escapes++ & F::exponent_mask; });
    if (!enough) return false;
    if constexpr (F::has_high) {
      unpack_group<high_width>(from + layout.high_at + bit_group_bytes(first, high_width), padded,
                               scratch.high);
    }
    join<F>(scratch, from + layout.low_at + first, layout.elements, count,
            rows.data() + first * sizeof(typename F::Type));
  }
  return escapes == end;
}

using Half = Form<std::uint16_t, 5>;
using Brain = Form<std::uint16_t, 8>;
using Single = Form<std::uint32_t, 8>;

/// Calls `run` with the form of the elements.
template <class Run>
auto with_form(const RowShape& shape, Run run) {
  if (shape.element_bytes == 4) return run(Single{});
  if (shape.exponent_bits == 5) return run(Half{});
  return run(Brain{});
}

}  // namespace

std::size_t packed_fixed_bytes(const RowShape& shape, std::size_t rows_bytes,
                               unsigned width) noexcept {
  return layout_of(shape, rows_bytes, width).escapes_at;
}

void packed_apply(std::span<const std::byte> rows, const RowShape& shape, unsigned width,
                  std::vector<std::byte>& work, Filtered& out) {
  const Layout layout = layout_of(shape, rows.size(), width);
  const Scratch scratch(work, layout.group);
  with_form(shape, [&](auto form) {
    using F = decltype(form);
    if (width == 3) return apply<F, 3>(rows, layout, scratch, out);
    return apply<F, 4>(rows, layout, scratch, out);
  });
  out.head_bytes = layout.bases;
  out.end_part(layout.high_at);
  out.end_part(layout.escapes_at);
  out.end_part(out.bytes.size());
}

bool packed_undo(std::span<const std::byte> in, const RowShape& shape, unsigned width,
                 std::vector<std::byte>& work, std::span<std::byte> rows) {
  const Layout layout = layout_of(shape, rows.size(), width);
  if (in.size() < layout.escapes_at) return false;
  const Scratch scratch(work, layout.group);
  return with_form(shape, [&](auto form) {
    using F = decltype(form);
    return width == 3 ? undo<F, 3>(in, layout, scratch, rows)
                      : undo<F, 4>(in, layout, scratch, rows);
  });
}

}  // namespace esker::detail
