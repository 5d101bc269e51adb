// Invariants
// 1. There is no free list: a FREE word is taken by one compare-and-swap, and losing it only splits
//    the run. Nothing has to be repaired when an allocator dies.
// 2. A reserved block is pinned by its owner from the first moment (the pin becomes the Prefix's),
//    and its old header is gone before its first row is written.
#include "store/allocate.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "store/evict.hpp"
#include "store/grow.hpp"
#include "store/reap.hpp"
#include "store/retire.hpp"

namespace esker::detail {

namespace {

constexpr std::uint32_t line_blocks = 64;

struct FreeRun {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

bool is_free(const Core& core, std::uint32_t block) noexcept {
  return core.word(block, std::memory_order_relaxed).state == BlockState::free;
}

/// Another handle is filling this line of 64 blocks: sharing its cache lines would slow both.
bool line_in_use(const Core& core, std::uint32_t line, std::uint32_t blocks) noexcept {
  const std::uint32_t end = std::min(blocks, (line + 1) * line_blocks);
  for (std::uint32_t block = line * line_blocks; block < end; ++block) {
    const BlockWord word = core.word(block, std::memory_order_relaxed);
    if (word.state == BlockState::reserved && word.owner != core.me()) return true;
  }
  return false;
}

/// FREE blocks from `first` on, within one segment, at most `most`.
std::uint32_t run_length(const Core& core, std::uint32_t first, std::uint32_t most) noexcept {
  const std::uint32_t per_segment = core.superblock.segment_blocks;
  const std::uint32_t segment_end = (first / per_segment + 1) * per_segment;
  if (core.segments.segment_of(first) == nullptr) return 0;
  std::uint32_t length = 0;
  while (length < most && first + length < segment_end && is_free(core, first + length)) ++length;
  return length;
}

/// The longest FREE run up to `wanted`, next-fit from this handle's own place; the first that is
/// `enough` ends the search.
FreeRun find_run(Core& core, std::uint32_t wanted, std::uint32_t enough, bool polite) noexcept {
  const std::uint32_t blocks = core.known_blocks();
  if (blocks == 0) return {};
  const std::uint32_t start =
      core.allocation_cursor.load(std::memory_order_relaxed) % blocks / line_blocks * line_blocks;
  FreeRun best;
  std::uint32_t checked_line = UINT32_MAX;
  bool avoid = false;
  for (std::uint32_t passed = 0; passed < blocks && best.count < enough;) {
    const std::uint32_t at = (start + passed) % blocks;
    if (polite && at / line_blocks != checked_line) {
      checked_line = at / line_blocks;
      avoid = line_in_use(core, checked_line, blocks);
    }
    if (avoid && polite) {
      passed += line_blocks - at % line_blocks;
      continue;
    }
    const std::uint32_t length = run_length(core, at, std::min(wanted, blocks - at));
    if (length > best.count) best = {at, length};
    passed += std::max(length, 1U);
  }
  return best;
}

/// Takes the blocks of a run one by one; stops at the first that somebody else took.
std::uint32_t take_run(Core& core, FreeRun run, std::vector<PinnedBlock>& out) {
  std::uint32_t taken = 0;
  for (; taken < run.count; ++taken) {
    const std::uint32_t block = run.first + taken;
    AtomicWord word = core.control.word(block);
    const std::uint64_t seen = word.load(std::memory_order_relaxed);
    if (BlockWord::unpack(seen).state != BlockState::free) break;
    const auto generation = transition::reserve(word, seen, core.me());
    if (!generation) break;
    core.pins.pin(block);
    out.push_back(PinnedBlock{block, *generation, 0});
  }
  core.allocation_cursor.store(run.first + taken, std::memory_order_relaxed);
  return taken;
}

void take_free(Core& core, std::uint32_t wanted, std::vector<PinnedBlock>& out) {
  for (const bool polite : {true, false}) {
    // After the whole store was searched once, runs half as long as the longest are taken as they
    // come: otherwise a fragmented store would be searched again for each of them.
    std::uint32_t enough = wanted;
    while (out.size() < wanted) {
      const auto missing = static_cast<std::uint32_t>(wanted - out.size());
      const FreeRun run = find_run(core, missing, std::min(enough, missing), polite);
      if (run.count == 0 || take_run(core, run, out) == 0) break;
      enough = std::max(1U, run.count / 2);
    }
  }
}

/// Calls `run(segment, local block, count)` for each stretch of adjacent blocks of one segment.
template <class F>
Result<void> for_each_stretch(const Core& core, const std::vector<PinnedBlock>& blocks, F&& run) {
  for (std::size_t i = 0; i < blocks.size();) {
    const Segment* segment = core.segments.segment_of(blocks[i].block);
    std::uint32_t count = 1;
    while (i + count < blocks.size() && blocks[i + count].block == blocks[i].block + count &&
           core.segments.segment_of(blocks[i + count].block) == segment) {
      ++count;
    }
    if (auto done = run(*segment, core.segments.local(blocks[i].block), count); !done) return done;
    i += count;
  }
  return {};
}

/// Headers are gone before any row is written.
Result<void> wipe_headers(const Core& core, const std::vector<PinnedBlock>& blocks) {
  static constexpr std::array<std::byte, 65'536> zeros{};
  const SegmentLayout& layout = core.segments.layout();
  if (auto ours = check_descriptors(core, blocks); !ours) return ours;
  return for_each_stretch(
      core, blocks,
      [&](const Segment& segment, std::uint32_t local, std::uint32_t count) -> Result<void> {
        const std::uint64_t offset = layout.header_offset(local);
        const std::uint64_t bytes = std::uint64_t{count} * layout.block_header_bytes();
        for (std::uint64_t done = 0; done < bytes; done += zeros.size()) {
          const std::size_t now = std::min<std::uint64_t>(bytes - done, zeros.size());
          auto written = segment.file.write_at(offset + done, std::span(zeros).first(now));
          if (!written) return written;
        }
        return {};
      });
}

bool marked_for_wiping(const Core& core, std::uint32_t block) noexcept {
  return (core.control.touch(block).load(std::memory_order_relaxed) & TouchWord::wipe_bit) != 0;
}

/// It had a life in this boot, or a header of an earlier one.
bool used_before(const Core& core, std::uint32_t block) noexcept {
  if (core.word(block, std::memory_order_relaxed).generation != 0) return true;
  const std::byte* header = core.segments.header(block);
  return header != nullptr && reinterpret_cast<const BlockHeader*>(header)->magic != 0;
}

void clear_mark(const Core& core, std::uint32_t block) noexcept {
  core.control.touch(block).fetch_and(~TouchWord::wipe_bit, std::memory_order_relaxed);
}

/// Rows that somebody asked to forget must not stay behind those that will be written.
Result<void> wipe_marked_rows(Core& core, const std::vector<PinnedBlock>& blocks) {
  std::vector<PinnedBlock> marked;
  for (const PinnedBlock& block : blocks) {
    if (marked_for_wiping(core, block.block)) marked.push_back(block);
  }
  return marked.empty() ? Result<void>{} : punch_blocks(core, marked);
}

}  // namespace

Result<void> check_descriptors(const Core& core, const std::vector<PinnedBlock>& blocks) {
  const Segment* checked = nullptr;
  for (const PinnedBlock& block : blocks) {
    const Segment* segment = core.segments.segment_of(block.block);
    if (segment == checked) continue;
    checked = segment;
    struct stat status {};
    if (fstat(segment->file.fd(), &status) != 0 || status.st_dev != segment->device ||
        status.st_ino != segment->inode) {
      return fail(Errc::io,
                  segment->file.path() + ": descriptor " + std::to_string(segment->file.fd()) +
                      " is not this file any more; something in this process closed descriptors "
                      "that belong to Esker: open the store again",
                  EBADF);
    }
  }
  return {};
}

Result<std::vector<PinnedBlock>> allocate(Core& core, std::uint32_t wanted, std::uint32_t after) {
  wanted = std::min(wanted, core.superblock.max_blocks());
  std::vector<PinnedBlock> blocks;
  blocks.reserve(wanted);
  if (after != UINT32_MAX && after + 1 < core.known_blocks()) {
    const std::uint32_t length = run_length(core, after + 1, wanted);
    if (length > 0) take_run(core, {after + 1, length}, blocks);
  }
  take_free(core, wanted, blocks);
  const auto still = [&] { return static_cast<std::uint32_t>(wanted - blocks.size()); };
  if (still() > 0) {
    const std::uint32_t reaped = reap_dead(core);
    if (sweep(core) + reaped > 0) take_free(core, wanted, blocks);
  }
  while (still() > 0 && grow(core)) take_free(core, wanted, blocks);
  if (still() > 0 && evict_for(core, still()) > 0) take_free(core, wanted, blocks);
  auto wiped = guarded([&]() -> Result<void> {
    auto done = wipe_headers(core, blocks);
    return done ? wipe_marked_rows(core, blocks) : done;
  });
  if (!wiped) {
    abandon(core, blocks);
    return tl::make_unexpected(std::move(wiped).error());
  }
  return blocks;
}

Result<void> punch_blocks(const Core& core, const std::vector<PinnedBlock>& blocks) {
  if (auto wiped = wipe_headers(core, blocks); !wiped) return wiped;
  const SegmentLayout& layout = core.segments.layout();
  auto punched = for_each_stretch(
      core, blocks,
      [&](const Segment& segment, std::uint32_t local, std::uint32_t count) -> Result<void> {
        for (std::size_t plane = 0; plane < layout.planes().size(); ++plane) {
          const std::uint64_t begin = layout.row_offset(plane, local, 0);
          const std::uint64_t end = layout.row_offset(plane, local + count, 0);
          if (auto done = segment.file.punch(begin, end - begin); !done) return done;
        }
        return {};
      });
  if (!punched) return punched;
  for (const PinnedBlock& block : blocks) clear_mark(core, block.block);
  return {};
}

std::vector<PinnedBlock> take_for_punching(Core& core, std::uint32_t first, std::uint32_t end,
                                           Wipe which) {
  std::vector<PinnedBlock> blocks;
  blocks.reserve(end - first);
  for (std::uint32_t block = first; block < end; ++block) {
    if (which == Wipe::marked && !marked_for_wiping(core, block)) continue;
    if (which == Wipe::used && !used_before(core, block)) continue;
    if (core.segments.segment_of(block) != nullptr && is_free(core, block)) {
      take_run(core, {block, 1}, blocks);
    }
  }
  return blocks;
}

Result<void> wipe_free(Core& core, Wipe which) {
  constexpr std::uint32_t batch_blocks = 256;
  const std::uint32_t known = core.known_blocks();
  for (std::uint32_t first = 0; first < known; first += batch_blocks) {
    std::vector<PinnedBlock> blocks =
        take_for_punching(core, first, std::min(known, first + batch_blocks), which);
    auto punched = guarded([&] { return punch_blocks(core, blocks); });
    abandon(core, blocks);
    if (!punched) return punched;
  }
  return {};
}

bool abandon(Core& core, const PinnedBlock& block) noexcept {
  core.pins.unpin(block.block);
  return transition::abort(core.control.word(block.block), block.generation, core.me());
}

void abandon(Core& core, std::vector<PinnedBlock>& blocks) noexcept {
  for (const PinnedBlock& block : blocks) abandon(core, block);
  blocks.clear();
}

}  // namespace esker::detail
