// Invariants
// 1. Order: data, header, checksum copy in `control`, READY, hints; parents before children, and a
//    child is headed only after its parent is settled, with the node id that survived.
// 2. Nothing is published unless every row of every plane was written.
// 3. Whatever happens, each reserved block ends published, adopted or FREE, and each pin is
//    accounted for: in the returned path, or given back.
#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "store/allocate.hpp"
#include "store/kept.hpp"
#include "store/reservation_body.hpp"
#include "store/retire.hpp"
#include "store/sequence.hpp"
#include "store/settle.hpp"
#include "store/walk.hpp"

namespace esker::detail {

namespace {

Result<void> refuse_holes(const Core& core, const ReservationBody& body) {
  const auto& planes = core.segments.layout().planes();
  for (std::size_t plane = 0; plane < planes.size(); ++plane) {
    const std::uint32_t hole = first_hole(core, body, plane);
    if (hole == UINT32_MAX) continue;
    return fail(Errc::invalid,
                core.directory.path() + ": publish: layer " + std::to_string(planes[plane].layer) +
                    ", " + std::string(name(planes[plane].plane)) + ", token " +
                    std::to_string(hole) + " was never written; nothing is published");
  }
  return {};
}

/// A chain of blocks that hang under each other, or a list of keys, as it is being published.
class Publisher {
 public:
  Publisher(Core& core, ReservationBody& body)
      : core_(core),
        body_(body),
        bytes_(core.segments.layout().block_header_bytes()),
        by_key_(!body.keys.empty()) {
    root_hash_ = chain::root(core.superblock.secret, body.name_space);
    position_ = Position{{}, root_hash_, body.name_space, 0};
    if (!by_key_ && !body.path.blocks.empty()) follow(body.path.blocks.back());
    position_.block_index = static_cast<std::uint32_t>(body.path.blocks.size());
  }

  Result<void> run() {
    // The pages of the stored path, and keys that stand already, have no block of ours.
    for (std::uint32_t page = 0; page < body_.block_of.size(); ++page) {
      if (body_.block_of[page] < 0) continue;
      if (stays_private(core_, body_, page)) break;
      auto more = publish_page(page);
      if (!more) return tl::make_unexpected(std::move(more).error());
      if (!*more) break;
    }
    return {};
  }

  [[nodiscard]] std::uint32_t published() const noexcept { return published_; }

 private:
  void follow(const PinnedBlock& pinned) {
    const auto* header = reinterpret_cast<const BlockHeader*>(core_.segments.header(pinned.block));
    position_.parent = header->node();
    position_.hash = header->chain_hash;
  }

  [[nodiscard]] std::span<const std::byte> label_of_page(std::uint32_t page) const {
    if (by_key_) return std::as_bytes(std::span(body_.keys[page]));
    const std::uint32_t begin = page * core_.block_tokens();
    const std::uint32_t tokens = body_.tokens_of_page(page, core_.block_tokens());
    return label_of(Tokens(body_.tokens).subspan(begin, tokens));
  }

  /// The parent is pinned, but may have been removed from the index: then children would be
  /// orphans.
  [[nodiscard]] bool parent_stands() {
    if (by_key_ || position_.parent.root()) return true;
    const PinnedBlock& parent = body_.path.blocks.back();
    if (core_.word(parent.block, std::memory_order_seq_cst).ready(parent.generation)) return true;
    return find_parent_again();
  }

  bool find_parent_again() {
    const PinnedBlock old = body_.path.blocks.back();
    const auto* header = reinterpret_cast<const BlockHeader*>(core_.segments.header(old.block));
    const Position above{header->parent(), header->parent_hash, body_.name_space, 0};
    const Found again = find_label(core_, above, header->chain_hash, core_.prover.label(*header),
                                   BlockKind::tokens, &old);
    if (!again) return false;
    core_.pins.unpin(old.block);
    body_.path.blocks.back() = again.pinned;
    follow(again.pinned);
    return true;
  }

  Result<bool> publish_page(std::uint32_t page) {
    if (!parent_stands()) return false;
    const auto index = static_cast<std::size_t>(body_.block_of[page]);
    const PinnedBlock block = body_.blocks[index];
    auto checksum = write_header(page, index);
    if (!checksum) return tl::make_unexpected(std::move(checksum).error());
    core_.control.check(block.block).store(*checksum, std::memory_order_relaxed);
    const TouchWord touch{stamp_now(), by_key_ ? 0 : page, false, false, 1};
    core_.control.touch(block.block).store(touch.pack(), std::memory_order_relaxed);
    if (!transition::publish(core_.control.word(block.block), block.generation, core_.me())) {
      return false;
    }
    core_.verified(block.block).store(block.generation, std::memory_order_relaxed);
    body_.blocks[index].generation = 0;  // no longer ours to abort
    const bool stays = keep(settle(core_, block, core_.me()),
                            PinnedBlock{block.block, block.generation, *checksum}, page);
    if (!stays) return by_key_;
    ++published_;
    return true;
  }

  /// Writes the header of reserved block `index`, which becomes page `page`; returns its checksum.
  Result<std::uint64_t> write_header(std::uint32_t page, std::size_t index) {
    const SegmentLayout& layout = core_.segments.layout();
    const PinnedBlock& block = body_.blocks[index];
    const auto label = label_of_page(page);
    const NodeId node = core_.new_node();
    BlockHeader header{};
    header.magic = block_magic;
    header.header_bytes = layout.block_header_bytes();
    header.block = block.block;
    header.generation = block.generation;
    header.node_random = node.random;
    header.node_counter = node.counter;
    header.parent_random = position_.parent.random;
    header.parent_counter = position_.parent.counter;
    header.parent_hash = by_key_ ? root_hash_ : position_.hash;
    header.chain_hash =
        by_key_ ? chain::key(root_hash_, body_.keys[page]) : chain::extend(position_.hash, label);
    header.first_token = by_key_ ? 0 : page * core_.block_tokens();
    header.tokens = body_.tokens_of_page(page, core_.block_tokens());
    header.published_unix_ns = unix_ns();
    header.label_bytes = static_cast<std::uint16_t>(label.size());
    header.kind = static_cast<std::uint8_t>(by_key_ ? BlockKind::key : BlockKind::tokens);
    header.namespace_bytes = static_cast<std::uint8_t>(body_.name_space.size());
    std::copy(body_.name_space.begin(), body_.name_space.end(), header.name_space.begin());
    std::fill(bytes_.begin(), bytes_.end(), std::byte{0});
    std::byte* sums = bytes_.data() + sizeof header + layout.label_capacity();
    const std::size_t sums_bytes = 8 * layout.planes().size();
    for (std::size_t plane = 0; plane < layout.planes().size(); ++plane) {
      const std::uint64_t sum = sum_of(index, plane, header.tokens);
      std::memcpy(sums + 8 * plane, &sum, sizeof sum);
    }
    header.sums_checksum = xxh3({sums, sums_bytes});
    std::memcpy(bytes_.data(), &header, sizeof header);
    std::memcpy(bytes_.data() + sizeof header, label.data(), label.size());
    const std::uint64_t checksum =
        block_checksum(std::span(bytes_).first(sizeof header + layout.label_capacity()),
                       block_seed(core_.superblock.uuid, block.block, block.generation));
    std::memcpy(bytes_.data() + offsetof(BlockHeader, checksum), &checksum, sizeof checksum);
    const Segment* segment = core_.segments.segment_of(block.block);
    const auto offset = layout.header_offset(core_.segments.local(block.block));
    if (auto done = segment->file.write_at(offset, bytes_); !done) {
      return tl::make_unexpected(std::move(done).error());
    }
    return checksum;
  }

  std::uint64_t sum_of(std::size_t index, std::size_t plane, std::uint32_t tokens) const {
    const SegmentLayout& layout = core_.segments.layout();
    const std::size_t at = index * layout.planes().size() + plane;
    if (body_.sum_states[at] == sum_known) return body_.sums[at];
    const std::byte* rows = core_.segments.rows(body_.blocks[index].block, plane);
    return xxh3({rows, std::size_t{tokens} * layout.planes()[plane].row_bytes});
  }

  /// Takes over what settling left: our block, or the one that was there first. False: neither.
  bool keep(const SettleResult& result, const PinnedBlock& ours, std::uint32_t page) {
    const std::uint32_t tokens = body_.tokens_of_page(page, core_.block_tokens());
    PinnedBlock kept = ours;
    if (result.outcome != Settled::ours) core_.pins.unpin(ours.block);
    if (result.outcome == Settled::nobody) return false;
    if (result.outcome == Settled::theirs) {
      core_.count(Counter::adopted_blocks);
      kept = result.winner.pinned;
    } else {
      core_.count(Counter::published_blocks);
      core_.count(Counter::published_tokens, tokens);
    }
    if (by_key_) {
      body_.key_blocks[page] = kept;
      return true;
    }
    body_.path.blocks.push_back(kept);
    body_.path.tokens += tokens;
    follow(kept);
    return true;
  }

  Core& core_;
  ReservationBody& body_;
  std::vector<std::byte> bytes_;
  bool by_key_;
  std::uint64_t root_hash_ = 0;
  Position position_;
  std::uint32_t published_ = 0;
};

/// A longer block took the place of the partial one that it continues.
void supersede(Core& core, const ReservationBody& body) {
  if (!body.supersedes) return;
  const PinnedBlock& old = body.continued;
  // A kept session ends there, and holds what it says.
  if (is_kept(core, old.block)) return;
  const BlockWord word = core.word(old.block);
  if (word.ready(old.generation) && retire(core, old.block, word)) {
    core.count(Counter::superseded_blocks);
  }
}

/// When nothing was reserved behind the partial block, it ends the returned path.
bool ends_in_continued(const ReservationBody& body) {
  return body.blocks.empty() && body.shared > 0;
}

/// The path of a list of keys is its leading run; what stands behind a gap is let go.
void take_leading_keys(Core& core, ReservationBody& body) {
  bool leading = true;
  for (PinnedBlock& pinned : body.key_blocks) {
    leading = leading && pinned.generation != 0;
    if (pinned.generation == 0) continue;
    if (leading) {
      body.path.blocks.push_back(pinned);
    } else {
      core.pins.unpin(pinned.block);
    }
    pinned.generation = 0;
  }
  body.path.tokens = static_cast<std::uint32_t>(body.path.blocks.size()) * core.block_tokens();
}

}  // namespace

Result<PrefixBody*> publish(Core& core, ReservationBody& body) {
  if (auto whole = refuse_holes(core, body); !whole) {
    return tl::make_unexpected(std::move(whole).error());
  }
  // Room for everything first: once blocks are published nothing may fail for want of memory.
  const std::size_t most =
      std::max(body.keys.size(), body.path.blocks.size() + body.blocks.size() + 1);
  const std::size_t planes = core.segments.layout().planes().size();
  body.path.blocks.reserve(most);
  body.path.checked.reserve(div_ceil(most * planes, 64));
  Publisher publisher(core, body);
  PrefixBody* out = core.bodies.take();
  if (out == nullptr) return fail(Errc::no_memory, "publish: out of memory");
  auto done = publisher.run();
  if (!done) {
    core.bodies.give(out);
    Error error = std::move(done).error();
    error.message +=
        "; " + std::to_string(publisher.published()) + " blocks before it are published";
    return tl::make_unexpected(std::move(error));
  }
  if (publisher.published() > 0) supersede(core, body);
  if (ends_in_continued(body)) {
    body.path.blocks.push_back(body.continued);
    body.path.tokens += body.shared;
    body.shared = 0;
  }
  if (!body.keys.empty()) take_leading_keys(core, body);
  std::swap(*out, body.path);
  out->block_tokens = core.block_tokens();
  out->keys = !body.keys.empty();
  out->checked.assign(div_ceil(out->blocks.size() * planes, 64), 0);  // fits: reserved above
  touch_path(core, *out);
  if (body.sequence) hand_back(core, body, *out);
  return out;
}

void abandon(Core& core, ReservationBody& body) noexcept {
  if (body.sequence) hand_back_unchanged(body);
  for (const PinnedBlock& block : body.blocks) {
    if (block.generation == 0) continue;  // published or adopted
    if (abandon(core, block)) core.count(Counter::dropped_blocks);
  }
  body.blocks.clear();
  if (body.shared > 0) core.pins.unpin(body.continued.block);
  body.shared = 0;
  for (const PinnedBlock& pinned : body.key_blocks) {
    if (pinned.generation != 0) core.pins.unpin(pinned.block);
  }
  body.key_blocks.clear();
  unpin_all(core, body.path);
}

}  // namespace esker::detail
