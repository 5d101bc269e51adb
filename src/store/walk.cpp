// Invariants
// 1. A block is part of a path only if it was READY after it was pinned, its header is proved, its
//    label equals our tokens and its parent's node id is the node matched one step before. By
//    induction a wrong hit is impossible, whatever collides.
// 2. Every block that a function here returns is pinned once; every other block is unpinned again.
// 3. A doubt is a miss: nothing here waits, throws or fails.
#include "store/walk.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "store/retire.hpp"

namespace esker::detail {

namespace {

constexpr std::size_t hash_chunk = 64;

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

/// Parent identity; at the root the namespace decides.
bool hangs_under(const BlockHeader& header, const Position& position) noexcept {
  if (header.parent() != position.parent) return false;
  if (!position.parent.root()) return true;
  return std::string_view(header.name_space.data(), header.namespace_bytes) == position.name_space;
}

void consider(Core& core, const Position& position, std::uint64_t hash, Tokens rest,
              Partial& best) noexcept {
  for (std::uint64_t& place : core.control.bucket(hash)) {
    const std::uint64_t hint = AtomicWord(place).load(std::memory_order_relaxed);
    if (!Hint::names(hint, hash, HintKind::part)) continue;
    const Found found = pin_and_prove(core, hint);
    if (!found) continue;
    const bool candidate = found.header->kind == static_cast<std::uint8_t>(BlockKind::tokens) &&
                           hangs_under(*found.header, position);
    const std::uint32_t common =
        candidate ? common_tokens(core.prover.label(*found.header), rest) : 0;
    if (common > best.common) {
      if (best.found) core.pins.unpin(best.found.pinned.block);
      best = Partial{found, common};
    } else {
      core.pins.unpin(found.pinned.block);
    }
  }
}

/// A mark that somebody sets meanwhile must not be lost, and a hot prefix that many threads look up
/// should be written once per tick and not once per lookup.
void touch_block(const Core& core, std::uint32_t block, std::uint32_t stamp,
                 std::uint32_t depth) noexcept {
  AtomicWord word = core.control.touch(block);
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  for (int round = 0; round < 4; ++round) {
    TouchWord touch = TouchWord::unpack(seen);
    if (touch.stamp == stamp && touch.depth == depth) return;
    if (touch.frequency < UINT8_MAX) ++touch.frequency;
    touch.stamp = stamp;
    touch.depth = depth;
    if (word.compare_exchange_weak(seen, touch.pack(), std::memory_order_relaxed)) return;
  }
}

enum class Step : std::uint8_t { stepped, missed, out_of_memory };

/// Goes on to a block that was found under the position.
Step step_to(Core& core, const Found& found, Walk& out, PrefixBody& body) noexcept {
  if (!found) return Step::missed;
  if (!append(core, body, found, core.block_tokens())) return Step::out_of_memory;
  out.position.parent = found.header->node();
  out.position.hash = found.header->chain_hash;
  ++out.position.block_index;
  return Step::stepped;
}

/// Walks whole blocks from the position on until one is missing. `rest` begins at the position.
Step walk_whole(Core& core, Tokens rest, Walk& out, PrefixBody& body) noexcept {
  const std::uint32_t block_tokens = core.block_tokens();
  std::size_t whole_left = rest.size() / block_tokens;
  std::uint64_t hash = out.position.hash;
  while (whole_left > 0) {
    std::array<std::uint64_t, hash_chunk> hashes{};
    const std::size_t now = std::min(whole_left, hash_chunk);
    for (std::size_t i = 0; i < now; ++i) {
      hash = chain::extend(hash, label_of(rest.subspan(i * block_tokens, block_tokens)));
      hashes[i] = hash;
      __builtin_prefetch(core.control.bucket(hash).data());
    }
    for (std::size_t i = 0; i < now; ++i) {
      const auto label = label_of(rest.subspan(i * block_tokens, block_tokens));
      const Found found = find_label(core, out.position, hashes[i], label, BlockKind::tokens);
      const Step step = step_to(core, found, out, body);
      if (step != Step::stepped) return step;
    }
    rest = rest.subspan(now * block_tokens);
    whole_left -= now;
  }
  return Step::missed;
}

}  // namespace

Found pin_and_prove(Core& core, std::uint64_t hint) noexcept {
  const std::uint32_t block = Hint::block(hint);
  if (block >= core.known_blocks()) return {};
  const BlockWord before = core.word(block, std::memory_order_relaxed);
  if (before.state != BlockState::ready || !Hint::of_generation(hint, before.generation)) {
    return {};
  }
  core.pins.pin(block);
  const BlockWord word = core.word(block, std::memory_order_seq_cst);
  if (!word.ready(before.generation)) {
    core.pins.unpin(block);
    return {};
  }
  const BlockHeader* header = core.prover.prove(block, word.generation);
  if (header == nullptr) {
    if (core.segments.segment_of(block) != nullptr) condemn(core, block, word, "header");
    core.pins.unpin(block);
    return {};
  }
  return Found{PinnedBlock{block, word.generation, header->checksum}, word.owner, header};
}

Found pin_node(Core& core, std::uint32_t block, std::uint32_t generation,
               const NodeId& node) noexcept {
  const Found found = pin_and_prove(core, Hint::pack(0, HintKind::whole, block, generation));
  if (!found) return {};
  if (found.pinned.generation == generation && found.header->node() == node) return found;
  core.pins.unpin(block);
  return {};
}

Found find_label(Core& core, const Position& position, std::uint64_t hash,
                 std::span<const std::byte> label, BlockKind kind,
                 const PinnedBlock* other_than) noexcept {
  const bool whole = kind == BlockKind::key || label.size() == std::size_t{4} * core.block_tokens();
  const HintKind hint_kind = whole ? HintKind::whole : HintKind::part;
  for (std::uint64_t& place : core.control.bucket(hash)) {
    const std::uint64_t hint = AtomicWord(place).load(std::memory_order_relaxed);
    if (!Hint::names(hint, hash, hint_kind)) continue;
    if (other_than != nullptr && Hint::block(hint) == other_than->block) continue;
    const Found found = pin_and_prove(core, hint);
    if (!found) continue;
    if (found.header->kind == static_cast<std::uint8_t>(kind) &&
        hangs_under(*found.header, position) &&
        same_bytes(core.prover.label(*found.header), label)) {
      return found;
    }
    core.pins.unpin(found.pinned.block);
  }
  return {};
}

Partial find_partial(Core& core, const Position& position, Tokens rest) noexcept {
  const std::uint32_t block_tokens = core.block_tokens();
  Partial best;
  if (rest.empty()) return best;
  rest = rest.first(std::min<std::size_t>(rest.size(), block_tokens));
  const auto probe = [&](std::size_t length) {
    const auto hash = chain::extend(position.hash, label_of(rest.first(length)));
    consider(core, position, hash, rest, best);
  };
  if (rest.size() < block_tokens) probe(rest.size());
  for (const std::uint32_t length : part_lengths(block_tokens)) {
    if (best.common >= length && best.common > 0) break;
    if (length == 0 || length > rest.size()) continue;
    if (length == rest.size() && rest.size() < block_tokens) continue;
    probe(length);
  }
  return best;
}

bool walk(Core& core, Tokens tokens, std::string_view name_space, PrefixBody& body,
          Walk& out) noexcept {
  const std::uint32_t block_tokens = core.block_tokens();
  core.follow_growth();
  body.block_tokens = block_tokens;
  out.position = Position{{}, chain::root(core.superblock.secret, name_space), name_space, 0};
  for (;;) {
    const auto rest = [&] {
      return tokens.subspan(std::size_t{out.position.block_index} * block_tokens);
    };
    if (walk_whole(core, rest(), out, body) == Step::out_of_memory) return false;
    out.partial = find_partial(core, out.position, rest());
    if (out.partial.common < block_tokens) return true;
    // Published between the two looks, and whole: go on from there. Each round is a step.
    const Found whole = std::exchange(out.partial, Partial{}).found;
    if (step_to(core, whole, out, body) != Step::stepped) return false;
  }
}

bool pin_stored(Core& core, Tokens tokens, std::string_view name_space, PrefixBody& body) noexcept {
  Walk walked;
  if (!walk(core, tokens, name_space, body, walked)) return false;
  return !walked.partial.found || append(core, body, walked.partial.found, walked.partial.common);
}

bool append(Core& core, PrefixBody& body, const Found& found, std::uint32_t tokens) noexcept {
  try {
    body.blocks.push_back(found.pinned);
    const std::size_t bits = body.blocks.size() * core.segments.layout().planes().size();
    body.checked.resize(div_ceil(bits, 64));
  } catch (const std::bad_alloc&) {
    if (!body.blocks.empty() && body.blocks.back().block == found.pinned.block) {
      body.blocks.pop_back();
    }
    core.pins.unpin(found.pinned.block);
    return false;
  }
  body.tokens += tokens;
  return true;
}

void unpin_all(Core& core, PrefixBody& body) noexcept {
  for (const PinnedBlock& pinned : body.blocks) core.pins.unpin(pinned.block);
  body.clear();
}

void touch_path(Core& core, const PrefixBody& body) noexcept {
  const std::uint32_t stamp = stamp_now();
  std::uint32_t depth = 0;
  for (const PinnedBlock& pinned : body.blocks) {
    touch_block(core, pinned.block, stamp, depth);
    if (!body.keys) ++depth;
  }
}

}  // namespace esker::detail
