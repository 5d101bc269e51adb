// Invariants
// 1. Only blocks that this handle has reserved for the moment are punched: nobody reads or writes
//    them.
#include <algorithm>

#include "base/error.hpp"
#include "region/file_system.hpp"
#include "store/allocate.hpp"
#include "store/house.hpp"
#include "store/retire.hpp"

namespace esker::detail {

namespace {

constexpr std::uint32_t batch_blocks = 1024;

std::uint64_t allocated_bytes(const Core& core) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < core.segments.count(); ++i) {
    const Segment* segment = core.segments.segment(i);
    if (segment == nullptr) continue;
    if (auto status = segment->file.status()) {
      bytes += static_cast<std::uint64_t>(status->st_blocks) * 512;
    }
  }
  return bytes;
}

std::uint64_t free_blocks(const Core& core) {
  std::uint64_t blocks = 0;
  for (std::uint32_t block = 0; block < core.known_blocks(); ++block) {
    if (core.word(block, std::memory_order_relaxed).state == BlockState::free) ++blocks;
  }
  return blocks;
}

}  // namespace

Result<Freed> trim(Core& core, std::uint64_t keep_free_bytes, bool dry_run) {
  core.follow_growth();
  Freed freed;
  const std::uint64_t block_bytes = core.superblock.geometry.block_bytes();
  auto space = space_of(core.directory.fd(), core.directory.path());
  if (!space) return tl::make_unexpected(std::move(space).error());
  if (dry_run) {
    const std::uint64_t wanted =
        keep_free_bytes > space->free_bytes ? keep_free_bytes - space->free_bytes : 0;
    freed.blocks = std::min(free_blocks(core), div_ceil(wanted, block_bytes));
    freed.disk_bytes = freed.blocks * block_bytes;
    return freed;
  }
  sweep(core);
  if (auto wiped = wipe_free(core, Wipe::marked); !wiped)
    return tl::make_unexpected(std::move(wiped).error());
  const std::uint64_t before = allocated_bytes(core);
  const std::uint32_t known = core.known_blocks();
  for (std::uint32_t first = 0; first < known; first += batch_blocks) {
    space = space_of(core.directory.fd(), core.directory.path());
    if (!space) return tl::make_unexpected(std::move(space).error());
    if (space->free_bytes >= keep_free_bytes) break;
    std::vector<PinnedBlock> blocks =
        take_for_punching(core, first, std::min(known, first + batch_blocks), Wipe::all);
    freed.blocks += blocks.size();
    auto punched = punch_blocks(core, blocks);
    abandon(core, blocks);
    if (!punched) return tl::make_unexpected(std::move(punched).error());
  }
  const std::uint64_t after = allocated_bytes(core);
  freed.disk_bytes = before > after ? before - after : 0;
  return freed;
}

}  // namespace esker::detail
