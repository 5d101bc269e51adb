// Invariants
// 1. Looking changes nothing: no word, no pin, no file is written here.
#include "store/observe.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cstring>

#include "base/guarded.hpp"
#include "store/attach.hpp"
#include "store/cold_tier.hpp"
#include "store/disk_use.hpp"
#include "store/kept.hpp"

namespace esker {

Result<Info> inspect(const std::string& path) {
  auto directory = detail::Directory::open(path);
  if (!directory) return tl::make_unexpected(std::move(directory).error());
  auto superblock = detail::read_superblock(*directory);
  if (!superblock) return tl::make_unexpected(std::move(superblock).error());
  return detail::describe_store(*directory, *superblock);
}

namespace detail {

namespace {

std::uint64_t pinned_blocks(const Core& core, std::uint32_t seat) noexcept {
  std::uint64_t pinned = 0;
  const std::uint64_t* row = core.control.row(seat);
  for (std::uint32_t line = 0; line * 64 < core.known_blocks(); ++line) {
    auto& word = const_cast<std::uint64_t&>(row[line]);
    pinned += static_cast<std::uint64_t>(
        __builtin_popcountll(AtomicWord(word).load(std::memory_order_relaxed)));
  }
  return pinned;
}

std::uint64_t pinned_by_any(const Core& core) noexcept {
  std::uint64_t pinned = 0;
  for (std::uint32_t line = 0; line * 64 < core.known_blocks(); ++line) {
    std::uint64_t all = 0;
    for (std::uint32_t seat = 0; seat < core.control.seats_in_use(); ++seat) {
      all |= AtomicWord(core.control.row(seat)[line]).load(std::memory_order_relaxed);
    }
    pinned += static_cast<std::uint64_t>(__builtin_popcountll(all));
  }
  return pinned;
}

void count_blocks(const Core& core, Stats& stats) noexcept {
  for (std::uint32_t block = 0; block < core.known_blocks(); ++block) {
    switch (core.word(block, std::memory_order_relaxed).state) {
      case BlockState::free:
        ++stats.blocks_free;
        break;
      case BlockState::reserved:
        ++stats.blocks_reserved;
        break;
      case BlockState::ready:
        ++stats.blocks_ready;
        break;
      case BlockState::retired:
        ++stats.blocks_retired;
        break;
      case BlockState::bad:
        ++stats.blocks_bad;
        break;
    }
  }
}

void sum_counters(const Core& core, Counters& out) noexcept {
  const auto sum = [&core](Counter which) {
    std::uint64_t total = 0;
    for (std::uint32_t seat = 0; seat < core.control.seats_in_use(); ++seat) {
      total += core.control.counter(seat, which).load(std::memory_order_relaxed);
    }
    return total;
  };
  out.lookups = sum(Counter::lookups);
  out.lookup_tokens = sum(Counter::lookup_tokens);
  out.hit_tokens = sum(Counter::hit_tokens);
  out.misses = sum(Counter::misses);
  out.degraded_misses = sum(Counter::degraded_misses);
  out.reserved_tokens = sum(Counter::reserved_tokens);
  out.published_blocks = sum(Counter::published_blocks);
  out.published_tokens = sum(Counter::published_tokens);
  out.adopted_blocks = sum(Counter::adopted_blocks);
  out.dropped_blocks = sum(Counter::dropped_blocks);
  out.short_reservations = sum(Counter::short_reservations);
  out.evicted_blocks = sum(Counter::evicted_blocks);
  out.removed_blocks = sum(Counter::removed_blocks);
  out.superseded_blocks = sum(Counter::superseded_blocks);
  out.bad_blocks = sum(Counter::bad_blocks);
  out.reaped_seats = sum(Counter::reaped_seats);
  out.displaced_hints = sum(Counter::displaced_hints);
  out.copied_bytes = sum(Counter::copied_bytes);
  out.verified_bytes = sum(Counter::verified_bytes);
  out.written_bytes = sum(Counter::written_bytes);
  out.frozen_blocks = sum(Counter::frozen_blocks);
  out.thawed_blocks = sum(Counter::thawed_blocks);
}

void count_cold(const Core& core, Stats& stats) {
  const auto view = core.cold->index.view(core);
  stats.cold_files = static_cast<std::uint32_t>(view->files.size() + view->damaged.size());
  stats.cold_file_bytes = view->damaged_bytes;
  const std::uint64_t token_bytes = core.superblock.geometry.token_bytes();
  for (const auto& file : view->files) {
    stats.cold_file_bytes += file->file_bytes();
    stats.cold_blocks += file->blocks();
    for (const ColdNode& node : file->nodes()) {
      if (node.has_rows) stats.cold_raw_bytes += node.tokens * token_bytes;
    }
  }
}

std::vector<SeatRecord> seats_of(const Core& core) {
  std::vector<SeatRecord> seats;
  for (std::uint32_t seat = 0; seat < core.control.seats_in_use(); ++seat) {
    seats.push_back(core.control.seat(seat));
  }
  return seats;
}

/// For a handle without a seat: what `control` says, as far as it can be read and makes sense.
std::vector<SeatRecord> peek_seats(const Directory& directory) {
  auto file = File::open_at(directory.fd(), directory.path(), file_names::control, O_RDONLY);
  ControlHeader header{};
  if (!file || !file->read_at(0, std::as_writable_bytes(std::span(&header, 1)))) return {};
  if (header.magic != control_magic || header.slots > max_seats) return {};
  std::vector<SeatRecord> seats(std::min(header.slots, header.slots_high_water));
  if (!file->read_at(header.slots_offset, std::as_writable_bytes(std::span(seats)))) return {};
  return seats;
}

std::vector<std::uint64_t> reserved_blocks(const Core& core) {
  std::vector<std::uint64_t> reserved(core.control.layout().seats);
  for (std::uint32_t block = 0; block < core.known_blocks(); ++block) {
    const BlockWord word = core.word(block, std::memory_order_relaxed);
    const bool owned = word.owner > 0 && word.owner <= reserved.size();
    if (owned && word.state == BlockState::reserved) ++reserved[word.owner - 1];
  }
  return reserved;
}

}  // namespace

Stats gather_stats(const Core& core) noexcept {
  Stats stats;
  stats.segments = core.segments.count();
  for (std::uint32_t i = 0; i < stats.segments; ++i) {
    if (core.segments.segment(i) == nullptr) ++stats.segments_unusable;
  }
  stats.blocks_total = core.known_blocks();
  count_blocks(core, stats);
  stats.blocks_pinned = pinned_by_any(core);
  stats.blocks_kept = kept_blocks(core);
  stats.block_bytes = core.superblock.geometry.block_bytes();
  stats.store_bytes = stats.blocks_ready * stats.block_bytes;
  stats.file_bytes = superblock_bytes + core.control.layout().file_bytes +
                     stats.segments * core.superblock.segment_file_bytes;
  for (std::uint32_t seat = 0; seat < core.control.seats_in_use(); ++seat) {
    if (core.control.phase(seat).load(std::memory_order_relaxed) !=
        static_cast<std::uint32_t>(SeatPhase::empty)) {
      ++stats.seats_taken;
    }
  }
  stats.since_unix_ns = core.control.built_unix_ns();
  sum_counters(core, stats.counters);
  // Without memory for it nothing is said of cold blocks.
  static_cast<void>(guarded([&]() -> Result<void> {
    count_cold(core, stats);
    return {};
  }));
  return stats;
}

std::vector<Process> list_processes(const Core& core) {
  std::vector<Process> processes;
  const bool seated = core.options.access != Access::inspect;
  const std::vector<SeatRecord> seats = seated ? seats_of(core) : peek_seats(core.directory);
  const std::vector<std::uint64_t> reserved = reserved_blocks(core);
  auto lock = LockFile::open(core.directory, core.superblock.sharing);
  for (std::uint32_t seat = 0; seat < seats.size(); ++seat) {
    const SeatRecord& record = seats[seat];
    if (record.phase == static_cast<std::uint32_t>(SeatPhase::empty)) continue;
    Process process;
    process.seat = seat;
    process.pid = record.pid;
    process.alive = !lock || lock->held_by_others(lock_bytes::seat + seat, 1);
    process.command.assign(record.command.data(),
                           strnlen(record.command.data(), record.command.size()));
    process.opened_unix_ns = record.opened_unix_ns;
    if (seated) {
      process.pinned_blocks = pinned_blocks(core, seat);
      process.reserved_blocks = reserved[seat];
    }
    processes.push_back(std::move(process));
  }
  return processes;
}

Info describe_store(const Directory& directory, const Superblock& superblock) {
  Info info;
  info.path = directory.path();
  info.uuid = superblock.uuid;
  info.write_version = superblock.write_version;
  info.read_version = superblock.read_version;
  info.created_unix_ns = superblock.created_unix_ns;
  info.geometry = superblock.geometry;
  info.model = superblock.model;
  info.sharing = superblock.sharing;
  info.capacity_bytes = superblock.capacity_bytes;
  info.segments_bytes = superblock.segments_bytes;
  info.cold_bytes = superblock.cold_bytes;
  info.segment_file_bytes = superblock.segment_file_bytes;
  info.segment_blocks = superblock.segment_blocks;
  info.max_segments = superblock.max_segments;
  info.seats = superblock.seats;
  if (auto segments = Directory::open_below(directory, file_names::segments)) {
    if (auto names = segments->names()) {
      for (const std::string& name : *names) {
        if (!name.starts_with(file_names::temporary_prefix)) ++info.segments;
      }
    }
  }
  const DiskUse use = disk_use(directory);
  info.disk_bytes = use.bytes;
  info.last_used_unix_ns = use.last_used_unix_ns;
  return info;
}

}  // namespace detail

}  // namespace esker
