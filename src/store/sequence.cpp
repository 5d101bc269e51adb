// Invariants
// 1. A tail is a block that this handle has reserved and pinned; its first `tail_rows` rows are
//    written and are never written again, so they may be read while more rows are put behind them.
// 2. A tail begins exactly where the stored part ends, at the start of a block.
// 3. While a reservation is lent, the tail stays with the sequence; the reservation only writes
//    behind its rows. It goes over with `hand_back`, or not at all.
#include "store/sequence.hpp"

#include <algorithm>

#include "store/allocate.hpp"

namespace esker::detail {

namespace {

const BlockHeader& header_of(const Core& core, const PinnedBlock& pinned) noexcept {
  return *reinterpret_cast<const BlockHeader*>(core.segments.header(pinned.block));
}

void forget_continued(Core& core, ReservationBody& body) noexcept {
  if (body.shared > 0) core.pins.unpin(body.continued.block);
  body.shared = 0;
  body.supersedes = false;
}

/// The sequence ends inside a block that it pins: the reservation takes its rows from there.
void continue_held(Core& core, ReservationBody& body, const Position& position,
                   std::uint32_t rows) {
  const PinnedBlock held = body.sequence->path()->blocks.back();
  forget_continued(core, body);
  core.pins.pin(held.block);
  body.continued = held;
  body.shared = rows;
  const BlockHeader& header = header_of(core, held);
  body.supersedes = header.tokens == rows && header.parent() == position.parent;
}

/// The rows of the tail, which nobody else can have changed.
Result<void> copy_tail_rows(Core& core, ReservationBody& body, std::uint32_t page) {
  const Sequence& sequence = *body.sequence;
  const SegmentLayout& layout = core.segments.layout();
  body.missing_begin = page * core.block_tokens();
  for (std::size_t plane = 0; plane < layout.planes().size(); ++plane) {
    const std::size_t bytes = std::size_t{sequence.tail_rows} * layout.planes()[plane].row_bytes;
    const std::byte* rows = core.segments.rows(sequence.tail.block, plane);
    if (auto done = write_rows(core, body, plane, body.missing_begin, {rows, bytes}); !done) {
      return done;
    }
  }
  return {};
}

}  // namespace

Sequence::~Sequence() {
  if (!core->forked()) drop_tail();
}

void Sequence::hold(PrefixBody* path) noexcept {
  stored = path == nullptr ? Prefix() : Prefix(core, path);
}

void Sequence::drop_tail() noexcept {
  if (tail.generation != 0) abandon(*core, tail);
  tail = {};
  tail_rows = 0;
}

void Sequence::truncate(std::uint32_t count) noexcept {
  if (count >= tokens.size()) return;
  tokens.resize(count);
  if (count <= stored.tokens()) {
    drop_tail();
    stored.shorten(count);
  } else {
    tail_rows = std::min(tail_rows, count - stored.tokens());
  }
}

PrefixBody* clone_path(Core& core, const PrefixBody& path) noexcept {
  PrefixBody* copy = core.bodies.take();
  if (copy == nullptr) return nullptr;
  try {
    copy->blocks = path.blocks;
    copy->checked.assign(path.checked.size(), 0);
  } catch (const std::bad_alloc&) {
    core.bodies.give(copy);
    return nullptr;
  }
  for (const PinnedBlock& pinned : copy->blocks) core.pins.pin(pinned.block);
  copy->tokens = path.tokens;
  copy->block_tokens = path.block_tokens;
  return copy;
}

Result<void> copy_tail(const Sequence& from, Sequence& to) {
  Core& core = *from.core;
  if (from.tail_rows == 0) return {};
  auto blocks = allocate(core, 1, from.tail.block);
  if (!blocks) return tl::make_unexpected(std::move(blocks).error());
  if (blocks->empty()) return {};
  const PinnedBlock block = blocks->front();
  to.tail = block;  // given back by whoever lets go of `to`
  const SegmentLayout& layout = core.segments.layout();
  const Segment* segment = core.segments.segment_of(block.block);
  for (std::size_t plane = 0; plane < layout.planes().size(); ++plane) {
    const std::size_t bytes = std::size_t{from.tail_rows} * layout.planes()[plane].row_bytes;
    const std::uint64_t offset = layout.row_offset(plane, core.segments.local(block.block), 0);
    const std::byte* rows = core.segments.rows(from.tail.block, plane);
    if (auto done = segment->file.write_at(offset, {rows, bytes}); !done) {
      to.drop_tail();
      return done;
    }
  }
  to.tail_rows = from.tail_rows;
  return {};
}

void continue_sequence(Core& core, ReservationBody& body, const Position& position) {
  const Sequence& sequence = *body.sequence;
  const std::uint32_t block_tokens = core.block_tokens();
  const auto whole = static_cast<std::uint32_t>(body.path.blocks.size());
  const std::uint32_t in_block = sequence.reusable() % block_tokens;
  // Somebody stored more, or blocks in between are not to be found any more: the store decides.
  if (sequence.reusable() / block_tokens != whole || in_block <= body.shared) return;
  if (sequence.tail_rows > 0) {
    body.carried_rows = in_block;
  } else {
    continue_held(core, body, position, in_block);
  }
}

Result<void> take_held_rows(Core& core, ReservationBody& body) {
  Sequence& sequence = *body.sequence;
  const std::uint32_t block_tokens = core.block_tokens();
  while (body.missing_begin < std::min(sequence.reusable(), body.missing_end)) {
    const std::uint32_t page = body.missing_begin / block_tokens;
    const bool in_tail = page * block_tokens >= sequence.stored.tokens();
    const std::uint32_t rows = in_tail ? sequence.tail_rows : sequence.path()->tokens_in(page);
    auto copied = in_tail ? copy_tail_rows(core, body, page)
                          : copy_block_rows(core, body, sequence.path()->blocks[page], rows, page);
    // A damaged block ends what can be saved; whoever appends is asked for the rest.
    if (!copied && copied.error().code == Errc::corrupt) return {};
    if (!copied) return copied;
    body.missing_begin = page * block_tokens + rows;
  }
  return {};
}

bool stays_private(const Core& core, const ReservationBody& body, std::uint32_t page) noexcept {
  return body.sequence != nullptr && !body.publishes_tail && page + 1 == body.block_of.size() &&
         body.tokens_of_page(page, core.block_tokens()) < core.block_tokens();
}

void hand_back(Core& core, ReservationBody& body, const PrefixBody& published) noexcept {
  const auto pages = static_cast<std::uint32_t>(body.block_of.size());
  // Right behind what is published: else its rows would follow a gap.
  const bool has_tail = !body.blocks.empty() && body.blocks.back().generation != 0 &&
                        stays_private(core, body, pages - 1) &&
                        published.tokens == (pages - 1) * core.block_tokens();
  const std::shared_ptr<Sequence> sequence = std::exchange(body.sequence, nullptr);
  if (body.carried_rows == 0) sequence->drop_tail();
  sequence->tail = has_tail ? std::exchange(body.blocks.back(), {}) : PinnedBlock{};
  sequence->tail_rows = has_tail ? body.tokens_of_page(pages - 1, core.block_tokens()) : 0;
  sequence->tokens.swap(body.tokens);
  sequence->hold(published.tokens == 0 ? nullptr : clone_path(core, published));
  if (sequence->stored.tokens() != published.tokens) sequence->drop_tail();
  sequence->lent = false;
}

void hand_back_unchanged(ReservationBody& body) noexcept {
  const std::shared_ptr<Sequence> sequence = std::exchange(body.sequence, nullptr);
  if (body.carried_rows > 0 && !body.blocks.empty()) {
    // Published before an I/O error further on: the rows are in the store.
    if (body.blocks.front().generation == 0) {
      sequence->tail = {};
      sequence->tail_rows = 0;
    }
    body.blocks.front().generation = 0;
  }
  sequence->lent = false;
}

}  // namespace esker::detail
