#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace esker::detail {

/// Life of a block. Never renumber: stored in the control file.
enum class BlockState : std::uint8_t { free = 0, reserved = 1, ready = 2, retired = 3, bad = 4 };

/// The 64-bit word of a block: generation 63…32, state 31…28, owner 27…16 (seat + 1, 0 nobody).
struct BlockWord {
  std::uint32_t generation = 0;
  BlockState state = BlockState::free;
  std::uint32_t owner = 0;

  [[nodiscard]] constexpr std::uint64_t pack() const noexcept {
    return std::uint64_t{generation} << 32 | std::uint64_t{static_cast<std::uint8_t>(state)} << 28 |
           std::uint64_t{owner} << 16;
  }
  /// An unknown state reads as BAD, so that garbage is never served and goes the way of BAD blocks.
  [[nodiscard]] static constexpr BlockWord unpack(std::uint64_t word) noexcept {
    const auto raw = static_cast<std::uint8_t>(word >> 28 & 0xF);
    return {static_cast<std::uint32_t>(word >> 32),
            raw <= 4 ? static_cast<BlockState>(raw) : BlockState::bad,
            static_cast<std::uint32_t>(word >> 16 & 0xFFF)};
  }
  [[nodiscard]] constexpr bool ready(std::uint32_t of_generation) const noexcept {
    return state == BlockState::ready && generation == of_generation;
  }
  friend constexpr bool operator==(const BlockWord&, const BlockWord&) = default;
};

using AtomicWord = std::atomic_ref<std::uint64_t>;

/// The rows of the sharing protocol's transition table (doc/architecture.md), one function and one
/// compare-and-swap each. False: the word has changed, look again.
namespace transition {

inline bool swap(AtomicWord word, std::uint64_t expected, BlockWord next,
                 std::memory_order order) noexcept {
  return word.compare_exchange_strong(expected, next.pack(), order, std::memory_order_relaxed);
}

/// FREE → RESERVED(me), the only place where the generation grows; never 0.
inline std::optional<std::uint32_t> reserve(AtomicWord word, std::uint64_t seen,
                                            std::uint32_t me) noexcept {
  std::uint32_t generation = BlockWord::unpack(seen).generation + 1;
  if (generation == 0) generation = 1;
  if (!swap(word, seen, {generation, BlockState::reserved, me}, std::memory_order_acq_rel)) {
    return std::nullopt;
  }
  return generation;
}

/// RESERVED(owner) → FREE: a dropped reservation, or a dead one.
inline bool abort(AtomicWord word, std::uint32_t generation, std::uint32_t owner) noexcept {
  return swap(word, BlockWord{generation, BlockState::reserved, owner}.pack(),
              {generation, BlockState::free, 0}, std::memory_order_release);
}

/// RESERVED(me) → READY(me): data and header are in place. Being a locked instruction on x86 it
/// also drains non-temporal stores.
inline bool publish(AtomicWord word, std::uint32_t generation, std::uint32_t me) noexcept {
  return swap(word, BlockWord{generation, BlockState::reserved, me}.pack(),
              {generation, BlockState::ready, me}, std::memory_order_acq_rel);
}

/// READY(owner) → READY(nobody): indexed, and no other copy of the node is left.
inline bool settle(AtomicWord word, std::uint32_t generation, std::uint32_t owner) noexcept {
  return swap(word, BlockWord{generation, BlockState::ready, owner}.pack(),
              {generation, BlockState::ready, 0}, std::memory_order_acq_rel);
}

/// READY → RETIRED: evicted, removed, superseded, or the losing copy of a node. seq_cst is one half
/// of the argument with the reader's pin; the other half is the pin's own.
inline bool retire(AtomicWord word, BlockWord seen) noexcept {
  return swap(word, seen.pack(), {seen.generation, BlockState::retired, 0},
              std::memory_order_seq_cst);
}

/// READY → BAD: a checksum does not hold.
inline bool condemn(AtomicWord word, BlockWord seen) noexcept {
  return swap(word, seen.pack(), {seen.generation, BlockState::bad, 0}, std::memory_order_acq_rel);
}

/// RETIRED or BAD → FREE, by anyone who found no pin after a seq_cst fence.
inline bool free(AtomicWord word, std::uint64_t seen) noexcept {
  return swap(word, seen, {BlockWord::unpack(seen).generation, BlockState::free, 0},
              std::memory_order_release);
}

/// Any other state with a dead owner: the owner field is cleared.
inline bool disown(AtomicWord word, BlockWord seen) noexcept {
  return swap(word, seen.pack(), {seen.generation, seen.state, 0}, std::memory_order_acq_rel);
}

}  // namespace transition

}  // namespace esker::detail
