// Invariants
// 1. The hashes of a block's hints are copied before the compare-and-swap that retires it:
//    afterwards a sweeper may free the block and its next owner rewrite the header.
// 2. No pin is needed to retire. A hint that is missed is dead by its generation.
// 3. RETIRED never reverts; a block becomes FREE only when no row shows a pin after the fence that
//    follows its retirement. Nothing is written to a swept block: only a reserver may write.
#include "store/retire.hpp"

#include <atomic>
#include <cstring>

#include "store/reap.hpp"

namespace esker::detail {

namespace {

/// Which of the 64 blocks at `line` are pinned by any seat.
std::uint64_t pinned_in_line(const Core& core, std::uint32_t line) noexcept {
  std::uint64_t pinned = 0;
  const std::uint32_t seats = core.control.seats_in_use();
  for (std::uint32_t seat = 0; seat < seats; ++seat) {
    pinned |= AtomicWord(core.control.row(seat)[line]).load(std::memory_order_relaxed);
  }
  return pinned;
}

std::uint32_t free_unpinned(Core& core, std::uint32_t line, std::uint32_t end,
                            std::uint64_t pinned) noexcept {
  std::uint32_t freed = 0;
  for (std::uint32_t block = line * 64; block < end; ++block) {
    if ((pinned >> (block & 63) & 1) != 0) continue;
    AtomicWord word = core.control.word(block);
    const std::uint64_t seen = word.load(std::memory_order_acquire);
    const BlockState state = BlockWord::unpack(seen).state;
    if (state != BlockState::retired && state != BlockState::bad) continue;
    // The block may have been retired after the rows were read: look at it again by itself.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::uint64_t now = pinned_in_line(core, line);
    std::atomic_thread_fence(std::memory_order_acquire);
    if ((now >> (block & 63) & 1) == 0 && transition::free(word, seen)) ++freed;
  }
  return freed;
}

std::uint64_t limbo_in_line(const Core& core, std::uint32_t line, std::uint32_t end) noexcept {
  std::uint64_t limbo = 0;
  for (std::uint32_t block = line * 64; block < end; ++block) {
    const BlockState state = core.word(block, std::memory_order_relaxed).state;
    if (state == BlockState::retired || state == BlockState::bad) {
      limbo |= std::uint64_t{1} << (block & 63);
    }
  }
  return limbo;
}

}  // namespace

HintSet hints_of_block(const Core& core, const BlockHeader& header) noexcept {
  return hints_of(header, core.prover.label(header), core.block_tokens());
}

bool retire(Core& core, std::uint32_t block, BlockWord seen) noexcept {
  const std::byte* bytes = core.segments.header(block);
  HintSet hints;
  bool known = bytes != nullptr;
  if (known) {
    // A copy: without a pin the header may change while we look at it. Then the swap below fails.
    alignas(8) std::array<std::byte, max_header_and_label_bytes> copy{};
    const std::size_t wanted = sizeof(BlockHeader) + core.segments.layout().label_capacity();
    std::memcpy(copy.data(), bytes, wanted);
    const auto* header = reinterpret_cast<const BlockHeader*>(copy.data());
    known = well_formed(*header, core.block_tokens(), core.segments.layout().block_header_bytes());
    if (known) hints = hints_of_block(core, *header);
  }
  if (!transition::retire(core.control.word(block), seen)) return false;
  if (known) remove_hints(core.control, hints, block, seen.generation);
  return true;
}

void condemn(Core& core, std::uint32_t block, BlockWord seen, std::string_view what) noexcept {
  // The owner may have settled the block meanwhile: look again while it stays in this life.
  for (int round = 0; round < 4; ++round) {
    if (transition::condemn(core.control.word(block), seen)) {
      core.count(Counter::bad_blocks);
      core.event(EventKind::block_bad, block, 0, what);
      return;
    }
    const BlockWord now = core.word(block);
    if (!now.ready(seen.generation)) return;
    seen = now;
  }
}

std::uint32_t sweep(Core& core) noexcept {
  std::uint32_t freed = 0;
  const std::uint32_t blocks = core.known_blocks();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::uint32_t line = 0; line * 64 < blocks; ++line) {
    const std::uint32_t end = line * 64 + 64 < blocks ? line * 64 + 64 : blocks;
    const std::uint64_t limbo = limbo_in_line(core, line, end);
    if (limbo == 0) continue;
    std::uint64_t pinned = pinned_in_line(core, line);
    if ((pinned & limbo) != 0 && reap_pinners(core, line, limbo) > 0) {
      pinned = pinned_in_line(core, line);
    }
    freed += free_unpinned(core, line, end, pinned);
  }
  return freed;
}

}  // namespace esker::detail
