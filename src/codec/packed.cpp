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

/// The upper end of the `window` neighbouring exponents that are most often met.
std::uint8_t best_base(const std::array<std::uint32_t, 256>& met, std::size_t window) noexcept {
  std::uint64_t inside = 0;
  std::uint64_t most = 0;
  std::size_t best = window - 1;
  for (std::size_t top = 0; top < met.size(); ++top) {
    inside += met[top];
    if (top >= window) inside -= met[top - window];
    if (top < window - 1 || inside <= most) continue;
    most = inside;
    best = top;
  }
  return static_cast<std::uint8_t>(best);
}

/// Learns the bases from some of the rows; those of a few more would be hardly better.
template <class F>
void learn(std::span<const std::byte> rows, const Layout& layout, std::size_t window,
           std::uint8_t* bases) noexcept {
  const std::size_t count = layout.elements / layout.bases;
  const std::size_t step =
      std::max<std::size_t>(1, count / std::clamp<std::size_t>(count / 8, 16, 128));
  for (std::size_t c = 0; c < layout.bases; ++c) {
    std::array<std::uint32_t, 256> met{};
    for (std::size_t i = c; i < layout.elements; i += step * layout.bases) {
      ++met[F::exponent(F::load(rows.data(), i))];
    }
    bases[c] = best_base(met, window);
  }
}

template <class F, unsigned width>
void apply(std::span<const std::byte> rows, const Layout& layout, Scratch scratch, Filtered& out) {
  constexpr std::uint8_t escape = (1U << width) - 1;
  out.bytes.resize(layout.escapes_at);
  learn<F>(rows, layout, escape, numbers(out.bytes.data()));
  for (std::size_t i = 0; i < layout.group; ++i) {
    scratch.bases[i] = numbers(out.bytes.data())[layout.bases == 1 ? 0 : i];
  }
  for (std::size_t first = 0; first < layout.elements; first += layout.group) {
    const std::size_t count = std::min(layout.group, layout.elements - first);
    const std::byte* from = rows.data() + first * sizeof(typename F::Type);
    std::byte* low = out.bytes.data() + layout.low_at + first;
    std::fill_n(scratch.symbols, align_up(count, 8), std::uint8_t{0});
    std::fill_n(scratch.high, align_up(count, 8), std::uint8_t{0});
    for (std::size_t i = 0; i < count; ++i) {
      const auto word = F::load(from, i);
      const auto rest = F::rest(word);
      const std::uint8_t exponent = F::exponent(word);
      const auto below =
          static_cast<std::uint8_t>((scratch.bases[i] - exponent) & F::exponent_mask);
      scratch.symbols[i] = std::min(below, escape);
      scratch.exponents[i] = exponent;
      if constexpr (F::has_high) scratch.high[i] = static_cast<std::uint8_t>(rest >> 8);
      for (unsigned plane = 0; plane < F::low_bytes; ++plane) {
        low[plane * layout.elements + i] = static_cast<std::byte>(rest >> (8 * plane));
      }
    }
    pack_group<width>(
        scratch.symbols, align_up(count, 8),
        numbers(out.bytes.data()) + layout.symbols_at + bit_group_bytes(first, width));
    if constexpr (F::has_high) {
      pack_group<high_width>(
          scratch.high, align_up(count, 8),
          numbers(out.bytes.data()) + layout.high_at + bit_group_bytes(first, high_width));
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (scratch.symbols[i] == escape) {
        out.bytes.push_back(static_cast<std::byte>(scratch.exponents[i]));
      }
    }
  }
}

/// True when one of the eight numbers at `from` is `number`; the padding of a group may be one.
bool any_of_eight(const std::uint8_t* from, std::uint8_t number) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101;
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  word ^= ones * number;
  return ((word - ones) & ~word & (ones << 7)) != 0;
}

/// Replaces the exponents of escapes by those of the list. False when the list is too short.
bool fill_escapes(const Scratch& scratch, std::size_t count, std::uint8_t escape,
                  std::span<const std::byte>& escapes) noexcept {
  std::size_t used = 0;
  for (std::size_t i = 0; i < count; i += 8) {
    if (!any_of_eight(scratch.symbols + i, escape)) continue;
    for (std::size_t k = i; k < std::min(i + 8, count); ++k) {
      if (scratch.symbols[k] != escape) continue;
      if (used == escapes.size()) return false;
      scratch.exponents[k] = std::to_integer<std::uint8_t>(escapes[used++]);
    }
  }
  escapes = escapes.subspan(used);
  return true;
}

template <class F>
void join(const Scratch& scratch, const std::uint8_t* low, std::size_t plane_bytes,
          std::size_t count, std::byte* rows) noexcept {
  using Word = typename F::Type;
  for (std::size_t i = 0; i < count; ++i) {
    Word rest = 0;
    for (unsigned plane = 0; plane < F::low_bytes; ++plane) {
      rest = static_cast<Word>(
          rest | static_cast<Word>(Word{low[plane * plane_bytes + i]} << (8 * plane)));
    }
    if constexpr (F::has_high) {
      rest = static_cast<Word>(rest | static_cast<Word>(Word{scratch.high[i]} << 8));
    }
    const Word word = F::join(scratch.exponents[i], rest);
    std::memcpy(rows + i * sizeof word, &word, sizeof word);
  }
}

template <class F, unsigned width>
bool undo(std::span<const std::byte> in, const Layout& layout, Scratch scratch,
          std::span<std::byte> rows) noexcept {
  constexpr std::uint8_t escape = (1U << width) - 1;
  const std::uint8_t* from = numbers(in.data());
  std::span<const std::byte> escapes = in.subspan(layout.escapes_at);
  for (std::size_t i = 0; i < layout.group; ++i) {
    scratch.bases[i] = from[layout.bases == 1 ? 0 : i];
  }
  for (std::size_t first = 0; first < layout.elements; first += layout.group) {
    const std::size_t count = std::min(layout.group, layout.elements - first);
    const std::size_t padded = align_up(count, 8);
    unpack_group<width>(from + layout.symbols_at + bit_group_bytes(first, width), padded,
                        scratch.symbols);
    for (std::size_t i = 0; i < count; ++i) {
      scratch.exponents[i] =
          static_cast<std::uint8_t>((scratch.bases[i] - scratch.symbols[i]) & F::exponent_mask);
    }
    if (!fill_escapes(scratch, count, escape, escapes)) return false;
    if constexpr (F::has_high) {
      unpack_group<high_width>(from + layout.high_at + bit_group_bytes(first, high_width), padded,
                               scratch.high);
    }
    join<F>(scratch, from + layout.low_at + first, layout.elements, count,
            rows.data() + first * sizeof(typename F::Type));
  }
  return escapes.empty();
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
