// Invariants (rows 5 to 7 of the transition table)
// 1. A block is unsettled while it is READY with an owner. Of two copies of a node the settled one
//    wins; of two unsettled ones that with the lower node id, and the winner retires the loser.
// 2. Adopting means: pin theirs by the reader's protocol first, retire ours afterwards.
// 3. Every step is idempotent, so that a reaper can repeat all of it for a dead owner.
#include "store/settle.hpp"

#include <atomic>

#include "store/retire.hpp"

namespace esker::detail {

namespace {

constexpr int max_rounds = 1024;  // bounds a loop that only hostile control data could prolong

}  // namespace

SettleResult settle(Core& core, const PinnedBlock& block, std::uint32_t owner) noexcept {
  const auto* header = reinterpret_cast<const BlockHeader*>(core.segments.header(block.block));
  const HintSet hints = hints_of_block(core, *header);
  const std::uint32_t displaced = insert_hints(core.control, hints, block.block, block.generation);
  if (displaced > 0) core.count(Counter::displaced_hints, displaced);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  core.follow_growth();  // another copy may lie in a segment that this handle has not seen yet

  const Position position{header->parent(), header->parent_hash,
                          std::string_view(header->name_space.data(), header->namespace_bytes), 0};
  const BlockWord own{block.generation, BlockState::ready, owner};
  const auto find_other = [&] {
    return find_label(core, position, header->chain_hash, core.prover.label(*header),
                      static_cast<BlockKind>(header->kind), &block);
  };
  for (int round = 0; round < max_rounds; ++round) {
    const Found theirs = find_other();
    if (!theirs) break;
    if (theirs.owner == 0 || theirs.header->node() < header->node()) {
      static_cast<void>(retire(core, block.block, own));
      return {Settled::theirs, theirs};
    }
    const BlockWord word{theirs.pinned.generation, BlockState::ready, theirs.owner};
    static_cast<void>(retire(core, theirs.pinned.block, word));
    core.pins.unpin(theirs.pinned.block);
  }
  if (transition::settle(core.control.word(block.block), block.generation, owner)) {
    return {Settled::ours, {}};
  }
  const Found winner = find_other();
  return winner ? SettleResult{Settled::theirs, winner} : SettleResult{};
}

}  // namespace esker::detail
