// Invariants
// 1. The target's old header is wiped before its first row is written, and the new header is
//    written last: a header never stands before rows that are not its own.
// 2. A copy has the same node id, parent and label, so a rebuild that finds both keeps one, and the
//    children of either.
// 3. No segment goes before all that was moved is on disk; the last goes first, so that the names
//    of those left are 0…n-1 at any moment.
#include "store/evacuate.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <tuple>

namespace esker::detail {

namespace {

struct Stored {
  std::uint32_t block = 0;
  TouchWord touch;
};

/// All that is stored and can be moved, what is worth most first: a parent before its children.
std::vector<Stored> stored_blocks(const Core& core) {
  std::vector<Stored> stored;
  for (std::uint32_t block = 0; block < core.known_blocks(); ++block) {
    const BlockWord word = core.word(block);
    const std::byte* header = core.segments.header(block);
    if (word.state != BlockState::ready || header == nullptr) continue;
    if (core.prover.prove(block, word.generation) == nullptr) continue;
    stored.push_back(
        {block, TouchWord::unpack(core.control.touch(block).load(std::memory_order_relaxed))});
  }
  std::sort(stored.begin(), stored.end(), [](const Stored& a, const Stored& b) {
    return std::tuple(!a.touch.kept, UINT32_MAX - a.touch.stamp, a.touch.depth, a.block) <
           std::tuple(!b.touch.kept, UINT32_MAX - b.touch.stamp, b.touch.depth, b.block);
  });
  return stored;
}

std::vector<std::byte> header_for(const Core& core, const Evacuation::Move& move) {
  const SegmentLayout& layout = core.segments.layout();
  const std::byte* old = core.segments.header(move.from);
  std::vector<std::byte> bytes(old, old + layout.block_header_bytes());
  BlockHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.block = move.to;
  header.generation = core.word(move.to).generation + 1;
  if (header.generation == 0) header.generation = 1;
  std::memcpy(bytes.data(), &header, sizeof header);
  const std::uint64_t checksum =
      block_checksum(std::span(bytes).first(sizeof header + layout.label_capacity()),
                     block_seed(core.superblock.uuid, header.block, header.generation));
  std::memcpy(bytes.data() + offsetof(BlockHeader, checksum), &checksum, sizeof checksum);
  return bytes;
}

Result<void> move_one(const Core& core, const Evacuation::Move& move) {
  const SegmentLayout& layout = core.segments.layout();
  const File& file = core.segments.segment_of(move.to)->file;
  const std::uint32_t to = core.segments.local(move.to);
  const std::vector<std::byte> header = header_for(core, move);
  const std::vector<std::byte> nothing(header.size());
  if (auto done = file.write_at(layout.header_offset(to), nothing); !done) return done;
  BlockHeader fixed;
  std::memcpy(&fixed, header.data(), sizeof fixed);
  const std::uint32_t tokens = std::min(fixed.tokens, core.block_tokens());
  for (std::size_t plane = 0; plane < layout.planes().size(); ++plane) {
    const std::span<const std::byte> rows(core.segments.rows(move.from, plane),
                                          std::size_t{tokens} * layout.planes()[plane].row_bytes);
    if (auto done = file.write_at(layout.row_offset(plane, to, 0), rows); !done) return done;
  }
  return file.write_at(layout.header_offset(to), header);
}

}  // namespace

Evacuation plan_evacuation(const Core& core, std::uint32_t keep_segments) {
  Evacuation plan;
  plan.keep_segments = keep_segments;
  const std::uint32_t per_segment = core.superblock.segment_blocks;
  const std::uint32_t border = keep_segments * per_segment;
  for (std::uint32_t index = 0; index < std::min(keep_segments, core.segments.count()); ++index) {
    if (core.segments.segment(index) != nullptr) plan.room_blocks += per_segment;
  }
  std::vector<Stored> stored = stored_blocks(core);
  plan.kept_blocks = static_cast<std::uint64_t>(
      std::count_if(stored.begin(), stored.end(), [](const Stored& s) { return s.touch.kept; }));
  if (plan.kept_blocks > plan.room_blocks) return plan;
  if (stored.size() > plan.room_blocks) {
    plan.dropped_blocks = stored.size() - plan.room_blocks;
    stored.resize(plan.room_blocks);
  }
  std::vector<bool> stays(std::min(border, core.known_blocks()));
  for (const Stored& one : stored) {
    if (one.block < stays.size()) stays[one.block] = true;
  }
  std::uint32_t target = 0;
  const auto usable = [&](std::uint32_t block) {
    return !stays[block] && core.segments.segment_of(block) != nullptr;
  };
  for (const Stored& one : stored) {
    if (one.block < border) continue;
    while (target < stays.size() && !usable(target)) ++target;
    if (target == stays.size()) break;  // not with what was counted above
    plan.moves.push_back({one.block, target++});
  }
  return plan;
}

Result<void> carry_out(const Core& core, const Evacuation& plan) {
  for (const Evacuation::Move& move : plan.moves) {
    if (auto done = move_one(core, move); !done) return done;
  }
  for (std::uint32_t index = 0; index < plan.keep_segments; ++index) {
    const Segment* segment = core.segments.segment(index);
    if (segment == nullptr || plan.moves.empty()) continue;
    if (auto done = segment->file.sync(); !done) return done;
  }
  for (std::uint32_t index = core.segments.count(); index > plan.keep_segments; --index) {
    if (auto done = core.segments_directory.remove_file(segment_name(index - 1)); !done) {
      return done;
    }
  }
  return core.segments_directory.sync();
}

}  // namespace esker::detail
