// Invariants
// 1. A hint is one word: never torn, never trusted. Garbage costs a probe.
// 2. A hint is dead when its block's word is not READY of its generation; only dead hints and empty
//    words are overwritten, but for displacement in a full bucket, which is counted.
// 3. "Present" means equal including the generation: a hint of an earlier life is not ours.
#include "index/hints.hpp"

#include "index/chain_hash.hpp"

namespace esker::detail {

namespace {

constexpr std::uint32_t max_equal_parts = 2;

bool live(const Control& control, std::uint64_t hint) noexcept {
  const std::uint32_t block = Hint::block(hint);
  if (block >= control.layout().max_blocks) return false;
  const BlockWord word = BlockWord::unpack(control.word(block).load(std::memory_order_relaxed));
  return word.state == BlockState::ready && Hint::of_generation(hint, word.generation);
}

struct BucketView {
  std::size_t vacant = hints_per_bucket;  ///< an empty or dead place
  std::uint64_t vacant_value = 0;
  std::size_t part = hints_per_bucket;  ///< a live PART hint of another hash
  std::uint32_t equal_parts = 0;
  bool present = false;
};

BucketView look(const Control& control, Control::Bucket bucket, std::uint64_t hint) noexcept {
  constexpr std::uint64_t tag_and_kind = 0xFFFF'FF00'3000'0000U;
  BucketView view;
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    const std::uint64_t found = AtomicWord(bucket[i]).load(std::memory_order_relaxed);
    if (found == hint) view.present = true;
    if (found == 0 || !live(control, found)) {
      if (view.vacant == hints_per_bucket) {
        view.vacant = i;
        view.vacant_value = found;
      }
      continue;
    }
    if ((found >> 28 & 3) == static_cast<std::uint64_t>(HintKind::part)) {
      if ((found & tag_and_kind) == (hint & tag_and_kind)) ++view.equal_parts;
      view.part = i;
    }
  }
  return view;
}

/// `first` hints always find a place; other parts give way to what is there.
std::uint32_t insert_one(const Control& control, HintSet::Entry entry, std::uint32_t block,
                         std::uint32_t generation, bool first) noexcept {
  constexpr int rounds = 8;
  const std::uint64_t hint = Hint::pack(entry.hash, entry.kind, block, generation);
  const Control::Bucket bucket = control.bucket(entry.hash);
  for (int round = 0; round < rounds; ++round) {
    const BucketView view = look(control, bucket, hint);
    if (view.present) return 0;
    if (!first && view.equal_parts >= max_equal_parts) return 0;
    const bool displaces = view.vacant == hints_per_bucket;
    if (displaces && !first) return 0;
    // A part of some block is less than the only way to another: parts go first.
    const std::size_t place = !displaces                      ? view.vacant
                              : view.part != hints_per_bucket ? view.part
                                                              : block % hints_per_bucket;
    std::uint64_t expected =
        displaces ? AtomicWord(bucket[place]).load(std::memory_order_relaxed) : view.vacant_value;
    if (AtomicWord(bucket[place])
            .compare_exchange_strong(expected, hint, std::memory_order_release,
                                     std::memory_order_relaxed)) {
      return displaces ? 1 : 0;
    }
  }
  return 0;
}

}  // namespace

std::array<std::uint32_t, 3> part_lengths(std::uint32_t block_tokens) noexcept {
  return {block_tokens / 2, block_tokens / 4, block_tokens / 8};
}

HintSet::Entry first_hint(const BlockHeader& header, std::uint32_t block_tokens) noexcept {
  const bool whole =
      header.kind == static_cast<std::uint8_t>(BlockKind::key) || header.tokens == block_tokens;
  return {header.chain_hash, whole ? HintKind::whole : HintKind::part};
}

HintSet hints_of(const BlockHeader& header, std::span<const std::byte> label,
                 std::uint32_t block_tokens) noexcept {
  HintSet hints;
  const HintSet::Entry own = first_hint(header, block_tokens);
  hints.add(own.hash, own.kind);
  if (header.kind != static_cast<std::uint8_t>(BlockKind::tokens)) return hints;
  std::uint32_t shorter_than = header.tokens;
  for (const std::uint32_t length : part_lengths(block_tokens)) {
    if (length == 0 || length >= shorter_than) continue;
    hints.add(chain::extend(header.parent_hash, label.first(std::size_t{4} * length)),
              HintKind::part);
    shorter_than = length;
  }
  return hints;
}

std::uint32_t insert_hints(const Control& control, const HintSet& hints, std::uint32_t block,
                           std::uint32_t generation) noexcept {
  std::uint32_t displaced = 0;
  bool first = true;
  for (const HintSet::Entry& entry : hints.all()) {
    displaced += insert_one(control, entry, block, generation, first);
    first = false;
  }
  return displaced;
}

void remove_hints(const Control& control, const HintSet& hints, std::uint32_t block,
                  std::uint32_t generation) noexcept {
  for (const HintSet::Entry& entry : hints.all()) {
    const std::uint64_t hint = Hint::pack(entry.hash, entry.kind, block, generation);
    for (std::uint64_t& place : control.bucket(entry.hash)) {
      std::uint64_t expected = hint;
      AtomicWord word(place);
      if (word.load(std::memory_order_relaxed) == hint) {
        word.compare_exchange_strong(expected, 0, std::memory_order_release,
                                     std::memory_order_relaxed);
      }
    }
  }
}

bool has_hint(const Control& control, HintSet::Entry entry, std::uint32_t block,
              std::uint32_t generation) noexcept {
  const std::uint64_t hint = Hint::pack(entry.hash, entry.kind, block, generation);
  for (std::uint64_t& place : control.bucket(entry.hash)) {
    if (AtomicWord(place).load(std::memory_order_relaxed) == hint) return true;
  }
  return false;
}

}  // namespace esker::detail
