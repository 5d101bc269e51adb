#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "format/block_header.hpp"
#include "sync/control.hpp"

namespace esker::detail {

/// Never renumber: stored in the control file.
enum class HintKind : std::uint8_t { whole = 1, part = 2 };

/// A 64-bit word that says where a block with this hash may lie: tag 63…40 (hash bits 63…40), low
/// generation bits 39…30, kind 29…28, block 27…0. 0 is no hint.
struct Hint {
  static constexpr std::uint32_t generation_mask = 0x3FF;

  [[nodiscard]] static constexpr std::uint64_t pack(std::uint64_t hash, HintKind kind,
                                                    std::uint32_t block,
                                                    std::uint32_t generation) noexcept {
    return (hash & 0xFFFF'FF00'0000'0000U) | std::uint64_t{generation & generation_mask} << 30 |
           std::uint64_t{static_cast<std::uint8_t>(kind)} << 28 | block;
  }
  [[nodiscard]] static constexpr std::uint32_t block(std::uint64_t hint) noexcept {
    return static_cast<std::uint32_t>(hint & 0x0FFF'FFFF);
  }
  [[nodiscard]] static constexpr bool names(std::uint64_t hint, std::uint64_t hash,
                                            HintKind kind) noexcept {
    return hint >> 40 == hash >> 40 && (hint >> 28 & 3) == static_cast<std::uint64_t>(kind);
  }
  [[nodiscard]] static constexpr bool of_generation(std::uint64_t hint,
                                                    std::uint32_t generation) noexcept {
    return (hint >> 30 & generation_mask) == (generation & generation_mask);
  }
};

/// The hints that a block leaves: first the one that makes it findable as a whole, then its parts.
struct HintSet {
  struct Entry {
    std::uint64_t hash = 0;
    HintKind kind = HintKind::whole;
  };
  std::array<Entry, 4> entries{};
  std::uint32_t count = 0;

  void add(std::uint64_t hash, HintKind kind) noexcept { entries[count++] = Entry{hash, kind}; }
  [[nodiscard]] std::span<const Entry> all() const noexcept {
    return std::span(entries).first(count);
  }
};

/// Lengths at which a block of `block_tokens` leaves PART hints: a half, a quarter, an eighth.
[[nodiscard]] std::array<std::uint32_t, 3> part_lengths(std::uint32_t block_tokens) noexcept;

/// Derived from the header alone, so that reapers, evictors and rebuilders find the same ones.
[[nodiscard]] HintSet hints_of(const BlockHeader& header, std::span<const std::byte> label,
                               std::uint32_t block_tokens) noexcept;

/// Puts all hints of a READY block into their buckets; idempotent. Returns how many live hints of
/// other blocks had to make room.
std::uint32_t insert_hints(const Control& control, const HintSet& hints, std::uint32_t block,
                           std::uint32_t generation) noexcept;

/// Takes exactly these hints out; those of other generations stay.
void remove_hints(const Control& control, const HintSet& hints, std::uint32_t block,
                  std::uint32_t generation) noexcept;

/// The hint by which the block is found as a whole.
[[nodiscard]] HintSet::Entry first_hint(const BlockHeader& header,
                                        std::uint32_t block_tokens) noexcept;

/// True when that hint is in its bucket.
[[nodiscard]] bool has_hint(const Control& control, HintSet::Entry entry, std::uint32_t block,
                            std::uint32_t generation) noexcept;

}  // namespace esker::detail
