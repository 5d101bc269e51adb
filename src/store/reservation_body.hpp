#pragma once

#include <atomic>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/result.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/prefix_body.hpp"

namespace esker::detail {

class Core;
struct Sequence;

/// How the payload checksum of a block and plane is known: 0 while nothing is written.
inline constexpr std::uint8_t sum_known = 1;  ///< one call covered all of it: its buffer was hashed
inline constexpr std::uint8_t sum_broken =
    2;  ///< written in pieces: hashed from the file at publish

/// What a Reservation owns. A "page" is one place of block_tokens positions: page i of a token path
/// covers tokens [i, i + 1) × block_tokens, page i of a list of keys is key i.
struct ReservationBody {
  // What was asked for.
  std::vector<std::int32_t> tokens;  ///< empty for keys
  std::vector<std::string> keys;     ///< empty for tokens
  std::string name_space;
  std::uint32_t prompt_tokens = 0;  ///< positions that a write may name

  // What is there already, pinned.
  PrefixBody path;           ///< the whole blocks that the reservation continues
  PinnedBlock continued;     ///< a block under the same parent that shares our first rows
  std::uint32_t shared = 0;  ///< how many; 0: `continued` is not set
  bool supersedes = false;   ///< all of `continued` is a prefix of ours
  std::vector<PinnedBlock> key_blocks;  ///< per key what is there, generation 0: nothing

  // Whose it is, where a session appends.
  std::shared_ptr<Sequence> sequence;  ///< nullptr: nobody's
  std::uint32_t carried_rows = 0;      ///< of the sequence's tail, which is our first block
  bool publishes_tail = false;         ///< also a last, partial block

  // What is being written.
  std::vector<PinnedBlock> blocks;     ///< reserved
  std::vector<std::int32_t> block_of;  ///< page → index into `blocks`, or -1: not ours to write
  std::uint32_t missing_begin = 0;
  std::uint32_t missing_end = 0;
  std::vector<std::uint64_t> rows;       ///< per plane and reserved row one bit; atomic_ref only
  std::vector<std::uint64_t> sums;       ///< per reserved block and plane
  std::vector<std::uint8_t> sum_states;  ///< atomic_ref only

  /// Tokens that a block at this page holds.
  [[nodiscard]] std::uint32_t tokens_of_page(std::uint32_t page,
                                             std::uint32_t block_tokens) const noexcept {
    const std::uint32_t left = prompt_tokens - page * block_tokens;
    return left < block_tokens ? left : block_tokens;
  }
};

/// Prepares the bookkeeping once `blocks` and `block_of` are set.
void prepare_bookkeeping(const Core& core, ReservationBody& body);

/// Stores packed rows; positions outside the reserved pages are dropped. Arguments are checked.
[[nodiscard]] Result<void> write_rows(Core& core, ReservationBody& body, std::size_t plane,
                                      std::uint32_t first_token, std::span<const std::byte> rows);

/// Copies the first `rows` rows of a pinned block into page `page`, verified.
[[nodiscard]] Result<void> copy_block_rows(Core& core, ReservationBody& body,
                                           const PinnedBlock& source, std::uint32_t rows,
                                           std::uint32_t page);

/// The rows that came with the sequence's tail count as written.
void mark_carried(const Core& core, ReservationBody& body);

/// The first position of a plane that was never written, or UINT32_MAX.
[[nodiscard]] std::uint32_t first_hole(const Core& core, const ReservationBody& body,
                                       std::size_t plane) noexcept;

/// Gives everything back: blocks, pins.
void abandon(Core& core, ReservationBody& body) noexcept;

/// Publishes in order; returns the pinned path.
[[nodiscard]] Result<PrefixBody*> publish(Core& core, ReservationBody& body);

}  // namespace esker::detail
