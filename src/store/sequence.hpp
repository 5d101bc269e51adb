#pragma once

#include <cstdint>
#include <esker/prefix.hpp>
#include <memory>
#include <string>
#include <vector>

#include "store/core.hpp"
#include "store/reservation_body.hpp"
#include "store/walk.hpp"

namespace esker::detail {

/// A sequence of tokens as a session holds it: the part that is stored, pinned, and behind it rows
/// of a block that is still private to this handle. Shared by the session and the reservation that
/// it has lent out.
struct Sequence {
  explicit Sequence(std::shared_ptr<Core> owner) : core(std::move(owner)) {}
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  ~Sequence();

  std::shared_ptr<Core> core;
  std::string name_space;
  std::vector<std::int32_t> tokens;
  Prefix stored;
  PinnedBlock tail;             ///< RESERVED by this handle; generation 0: there is none
  std::uint32_t tail_rows = 0;  ///< rows of `tail`, which begins where `stored` ends
  bool lent = false;            ///< a reservation is open

  [[nodiscard]] std::uint32_t reusable() const noexcept { return stored.tokens() + tail_rows; }
  /// The pinned path, or nullptr while nothing is stored.
  [[nodiscard]] PrefixBody* path() noexcept { return stored.body_; }
  /// Takes a pinned path over; nullptr: nothing is stored.
  void hold(PrefixBody* path) noexcept;
  void drop_tail() noexcept;
  void truncate(std::uint32_t count) noexcept;
};

/// The same pinned path once more; nullptr when memory is out.
[[nodiscard]] PrefixBody* clone_path(Core& core, const PrefixBody& path) noexcept;

/// Gives `to`, which shares the stored part of `from`, a tail of its own with the same rows. No
/// tail when the store has no block left for it.
[[nodiscard]] Result<void> copy_tail(const Sequence& from, Sequence& to);

/// Lets a reservation for the sequence's tokens begin where the sequence ends, not where a lookup
/// would. Called after the walk, before blocks are taken.
void continue_sequence(Core& core, ReservationBody& body, const Position& position);

/// Blocks that somebody took out of the trie are still pinned by the sequence: their rows go into
/// the new blocks, verified, and need not be computed again.
[[nodiscard]] Result<void> take_held_rows(Core& core, ReservationBody& body);

/// The last page is partial, and stays with the sequence.
[[nodiscard]] bool stays_private(const Core& core, const ReservationBody& body,
                                 std::uint32_t page) noexcept;

/// After publishing: the sequence has grown, holds what was published, and the private page.
void hand_back(Core& core, ReservationBody& body, const PrefixBody& published) noexcept;

/// After a reservation was dropped: the sequence is what it was.
void hand_back_unchanged(ReservationBody& body) noexcept;

}  // namespace esker::detail
