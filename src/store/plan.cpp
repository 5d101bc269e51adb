// Invariants
// 1. superblock + lock + tag + control + segments + sessions + cold never exceed the capacity.
// 2. A store has room for at least two blocks.
#include "store/plan.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "format/control_layout.hpp"
#include "format/segment_layout.hpp"

namespace esker::detail {

namespace {

constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t gib = 1ULL << 30;
constexpr std::uint64_t default_capacity_max = 64 * gib;
constexpr std::uint64_t segment_bytes_min = 64 * mib;
constexpr std::uint64_t segment_bytes_max = 16 * gib;
constexpr std::uint64_t segment_bytes_max_tmpfs = 256 * mib;
constexpr std::uint32_t comfortable_blocks = 4;
constexpr std::uint32_t fewest_blocks = 2;
constexpr std::uint64_t small_files_bytes = superblock_bytes + 12'288;  // lock, tag, note

std::uint64_t control_bytes(std::uint64_t blocks, const Superblock& plan) {
  return ControlLayout(static_cast<std::uint32_t>(blocks), plan.segment_blocks, plan.seats)
      .file_bytes;
}

std::uint64_t bytes_of_blocks(const Geometry& geometry, std::uint32_t blocks) {
  return SegmentLayout(geometry, blocks).file_bytes();
}

std::uint64_t wanted_segment_bytes(const Options& options, std::uint64_t capacity, bool tmpfs) {
  if (options.segment_bytes != 0) return options.segment_bytes;
  return std::clamp(capacity / 64, segment_bytes_min,
                    tmpfs ? segment_bytes_max_tmpfs : segment_bytes_max);
}

/// Blocks per segment: what was wanted, at least a few, at most what the share holds with its
/// control.
std::uint32_t choose_segment_blocks(const Geometry& geometry, std::uint64_t wanted,
                                    std::uint64_t share, std::uint32_t seats) {
  std::uint32_t blocks = std::max(segment_blocks_within(geometry, wanted), comfortable_blocks);
  blocks = std::min(blocks, segment_blocks_within(geometry, share));
  while (blocks >= fewest_blocks &&
         bytes_of_blocks(geometry, blocks) + ControlLayout(blocks, blocks, seats).file_bytes >
             share) {
    blocks -= std::max(1U, blocks / 64);
  }
  return blocks;
}

std::uint32_t choose_max_segments(const Superblock& plan, std::uint64_t share) {
  std::uint64_t count = std::min<std::uint64_t>(share / plan.segment_file_bytes,
                                                (max_store_blocks - 1) / plan.segment_blocks);
  while (count > 1 &&
         count * plan.segment_file_bytes + control_bytes(count * plan.segment_blocks, plan) >
             share) {
    --count;
  }
  return static_cast<std::uint32_t>(count);
}

std::uint64_t smallest_capacity(const Geometry& geometry, std::uint32_t seats) {
  const std::uint64_t needed = bytes_of_blocks(geometry, fewest_blocks) +
                               ControlLayout(fewest_blocks, fewest_blocks, seats).file_bytes +
                               small_files_bytes;
  return needed + needed / 63 + 4096;
}

/// Where the capacity went that the blocks lack.
std::string cold_text(std::uint64_t cold_bytes) {
  if (cold_bytes == 0) return {};
  return ", of which " + size_text(cold_bytes) + " (" + std::to_string(cold_bytes) +
         " bytes) are set aside for cold blocks";
}

/// Zero segments where not even one fits.
void resize_shares(Superblock& plan, std::uint64_t capacity_bytes, std::uint64_t cold_bytes) {
  plan.capacity_bytes = capacity_bytes;
  plan.cold_bytes = cold_bytes;
  plan.sessions_bytes = capacity_bytes / 64;
  std::uint64_t share = capacity_bytes;
  for (const std::uint64_t taken : {plan.sessions_bytes, small_files_bytes, cold_bytes}) {
    share = share > taken ? share - taken : 0;
  }
  plan.max_segments = choose_max_segments(plan, share);
  if (plan.segment_file_bytes + control_bytes(plan.segment_blocks, plan) > share) {
    plan.max_segments = 0;
  }
  plan.segments_bytes = plan.max_segments * plan.segment_file_bytes;
}

}  // namespace

Result<Superblock> plan_store(const Geometry& geometry, const ModelId& model,
                              const Options& options, const Surroundings& surroundings,
                              std::string_view path) {
  if (auto valid = geometry.validate(); !valid) {
    return tl::make_unexpected(std::move(valid).error());
  }
  if (options.seats == 0 || options.seats > max_seats) {
    return fail(Errc::invalid, std::string(path) + ": seats is " + std::to_string(options.seats) +
                                   ", allowed is 1…" + std::to_string(max_seats));
  }
  Superblock plan;
  plan.geometry = geometry;
  plan.model = model;
  plan.seats = options.seats;
  plan.sharing = options.sharing;
  plan.capacity_bytes = options.capacity_bytes != 0
                            ? options.capacity_bytes
                            : std::min(surroundings.free_bytes / 4, default_capacity_max);
  plan.sessions_bytes = plan.capacity_bytes / 64;
  plan.cold_bytes = options.cold_bytes;
  const std::uint64_t taken = plan.sessions_bytes + small_files_bytes;
  const std::uint64_t hot = plan.capacity_bytes > taken ? plan.capacity_bytes - taken : 0;
  const std::uint64_t share = hot > plan.cold_bytes ? hot - plan.cold_bytes : 0;
  const std::uint64_t wanted =
      wanted_segment_bytes(options, plan.capacity_bytes, surroundings.tmpfs);
  plan.segment_blocks = choose_segment_blocks(geometry, wanted, share, plan.seats);
  if (plan.segment_blocks < fewest_blocks) {
    return fail(Errc::invalid, std::string(path) + ": capacity is " +
                                   size_text(plan.capacity_bytes) + cold_text(plan.cold_bytes) +
                                   ", but two blocks of this geometry need at least " +
                                   size_text(smallest_capacity(geometry, plan.seats)) + " (" +
                                   std::to_string(smallest_capacity(geometry, plan.seats)) +
                                   " bytes); raise the capacity or lower block_tokens or seats");
  }
  plan.segment_file_bytes = bytes_of_blocks(geometry, plan.segment_blocks);
  plan.max_segments = choose_max_segments(plan, share);
  plan.segments_bytes = plan.max_segments * plan.segment_file_bytes;
  plan.created_unix_ns = unix_ns();
  if (!fill_random(plan.uuid) || !fill_random(plan.secret)) {
    return fail(Errc::io, std::string(path) + ": the kernel gives no random numbers");
  }
  return plan;
}

Result<Superblock> plan_resize(const Superblock& now, std::uint64_t capacity_bytes,
                               std::uint64_t cold_bytes, std::string_view path) {
  Superblock plan = now;
  resize_shares(plan, capacity_bytes, cold_bytes);
  if (plan.max_segments > 0) return plan;
  const std::uint64_t least = least_capacity(now, 1, cold_bytes);
  return fail(Errc::full, std::string(path) + ": capacity is " + size_text(capacity_bytes) +
                              ", but one segment of this store, its other files and " +
                              size_text(cold_bytes) + " for cold blocks need at least " +
                              size_text(least) + " (" + std::to_string(least) + " bytes)");
}

std::uint64_t least_capacity(const Superblock& now, std::uint32_t segments,
                             std::uint64_t cold_bytes) {
  std::uint64_t too_small = 0;
  std::uint64_t enough = UINT64_MAX;
  while (enough - too_small > 1) {
    const std::uint64_t middle = too_small + (enough - too_small) / 2;
    Superblock plan = now;
    resize_shares(plan, middle, cold_bytes);
    (plan.max_segments >= segments ? enough : too_small) = middle;
  }
  return enough;
}

}  // namespace esker::detail
