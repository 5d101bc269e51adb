// Invariants
// 1. A Core with a seat is LIVE from `attach` until its destructor has given everything back: own
//    RESERVED blocks, unsettled READY blocks, pins; EMPTY is written last.
// 2. In a forked child nothing shared is touched and nothing is unmapped: addresses of mappings
//    that were not inherited may belong to others there.
// 3. No thread of a handle outlives it.
#include "store/core.hpp"

#include <cstring>

#include "base/error.hpp"
#include "base/random.hpp"
#include "store/cold_tier.hpp"
#include "store/disk_use.hpp"
#include "store/reap.hpp"
#include "sync/event_ring.hpp"

namespace esker::detail {

SegmentPlan segment_plan(const Superblock& superblock) {
  SegmentPlan plan;
  plan.layout = SegmentLayout(superblock.geometry, superblock.segment_blocks);
  plan.identity = {superblock.uuid, geometry_digest(superblock.geometry)};
  plan.sharing = superblock.sharing;
  return plan;
}

Core::Core(Parts parts)
    : directory(std::move(parts.directory)),
      segments_directory(std::move(parts.segments_directory)),
      superblock(std::move(parts.superblock)),
      control(std::move(parts.control)),
      options(parts.options),
      seat(parts.seat_lock.index()),
      segments(segments_directory, segment_plan(superblock), superblock.max_segments,
               options.access != Access::inspect),
      seat_lock_(std::move(parts.seat_lock)) {}

Core::~Core() {
  const bool prepared = fork_guard_.data() != nullptr && per_block_.data() != nullptr;
  if (fork_guard_.data() != nullptr && forked()) {
    control.abandon();
    segments.abandon();
    seat_lock_.abandon();
    // Its thread and the mutexes that it may hold stayed behind in the parent.
    static_cast<void>(cold.release());
    return;
  }
  cold.reset();  // its thread uses everything else
  if (!prepared || options.access == Access::inspect) return;
  mark_used();
  leave_seat(*this);
}

Result<void> Core::prepare() {
  auto guard = ZeroMemory::allocate_wiped_on_fork();
  if (!guard) return tl::make_unexpected(std::move(guard).error());
  fork_guard_ = std::move(*guard);
  auto memory = ZeroMemory::allocate(std::size_t{3} * superblock.max_blocks() * 4);
  if (!memory) return tl::make_unexpected(std::move(memory).error());
  per_block_ = std::move(*memory);
  pins = PinTable(per_block(0), control.row(seat));
  const bool can_pin = options.access != Access::inspect;
  prover = Prover(segments, control, superblock.uuid, can_pin ? per_block(1) : nullptr);
  node_random_ = random_u64();
  if (node_random_ == 0) node_random_ = 1;
  allocation_cursor = static_cast<std::uint32_t>(random_u64());
  cold = std::make_unique<ColdTier>(*this);
  // So that a program that holds a few prefixes of usual length never sees its lookups allocate.
  constexpr std::size_t usual_blocks = 512;
  const std::size_t planes = segments.layout().planes().size();
  for (int i = 0; i < 4; ++i) {
    auto body = std::make_unique<PrefixBody>();
    body->blocks.reserve(usual_blocks);
    body->checked.reserve(div_ceil(usual_blocks * planes, 64));
    bodies.give(body.release());
  }
  return {};
}

void Core::map_segments(std::uint32_t count) noexcept {
  const std::uint32_t before = segments.count();
  if (segments.map_up_to(count) == 0) return;
  for (std::uint32_t index = before; index < count; ++index) {
    if (segments.segment(index) == nullptr) {
      event(EventKind::segment_unusable, index * superblock.segment_blocks, 0,
            "segment " + std::to_string(index));
    }
  }
}

void Core::follow_growth() noexcept {
  const std::uint32_t count = control.segment_count().load(std::memory_order_acquire);
  if (count > segments.count() && count <= superblock.max_segments) map_segments(count);
}

void Core::mark_used() const noexcept {
  if (options.counts_as_use && options.access != Access::inspect) mark_opened(directory);
}

Result<void> Core::usable(bool for_writing) const {
  if (forked()) {
    return fail(Errc::forked, directory.path() +
                                  ": this handle belongs to the parent process; open the store "
                                  "again after fork");
  }
  if (for_writing && options.access != Access::write) {
    return fail(Errc::invalid, directory.path() + ": access is " +
                                   (options.access == Access::read ? "read" : "inspect") +
                                   ", expected write; open the store with Access::write");
  }
  return {};
}

void Core::event(EventKind kind, std::uint32_t block, std::int32_t os_error,
                 std::string_view note) const noexcept {
  post_event(control, kind, seat, block, os_error, note);
}

}  // namespace esker::detail
