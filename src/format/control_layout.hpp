#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace esker::detail {

/// First bytes of `control`; doc/format.md, "Control". Constant while anyone has the store open,
/// but for the shared words at 256 and above.
struct ControlHeader {
  std::array<char, 8> magic;
  std::uint32_t layout_version;
  std::uint32_t slots;
  std::array<std::uint8_t, 16> boot_id;
  std::array<std::uint8_t, 16> uuid;
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t file_bytes;
  std::uint32_t max_blocks;
  std::uint32_t segment_blocks;
  std::uint32_t buckets;
  std::uint32_t row_bytes;
  std::uint64_t slots_offset;
  std::uint64_t words_offset;
  std::uint64_t checks_offset;
  std::uint64_t touches_offset;
  std::uint64_t rows_offset;
  std::uint64_t hints_offset;
  std::uint64_t events_offset;
  std::uint64_t built_unix_ns;
  std::uint64_t checksum;
  std::array<std::uint8_t, 96> reserved;
  // From here on shared words, each in a cache line of its own; accessed by atomic_ref only.
  alignas(64) std::uint32_t segment_count;
  alignas(64) std::uint64_t sessions_used_bytes;
  alignas(64) std::uint32_t slots_high_water;
  alignas(64) std::uint64_t event_sequence;
};
static_assert(std::is_trivially_copyable_v<ControlHeader>);
static_assert(sizeof(ControlHeader) == 512);
static_assert(offsetof(ControlHeader, magic) == 0);
static_assert(offsetof(ControlHeader, layout_version) == 8);
static_assert(offsetof(ControlHeader, slots) == 12);
static_assert(offsetof(ControlHeader, boot_id) == 16);
static_assert(offsetof(ControlHeader, uuid) == 32);
static_assert(offsetof(ControlHeader, device) == 48);
static_assert(offsetof(ControlHeader, inode) == 56);
static_assert(offsetof(ControlHeader, file_bytes) == 64);
static_assert(offsetof(ControlHeader, max_blocks) == 72);
static_assert(offsetof(ControlHeader, segment_blocks) == 76);
static_assert(offsetof(ControlHeader, buckets) == 80);
static_assert(offsetof(ControlHeader, row_bytes) == 84);
static_assert(offsetof(ControlHeader, slots_offset) == 88);
static_assert(offsetof(ControlHeader, words_offset) == 96);
static_assert(offsetof(ControlHeader, checks_offset) == 104);
static_assert(offsetof(ControlHeader, touches_offset) == 112);
static_assert(offsetof(ControlHeader, rows_offset) == 120);
static_assert(offsetof(ControlHeader, hints_offset) == 128);
static_assert(offsetof(ControlHeader, events_offset) == 136);
static_assert(offsetof(ControlHeader, built_unix_ns) == 144);
static_assert(offsetof(ControlHeader, checksum) == 152);
static_assert(offsetof(ControlHeader, reserved) == 160);
static_assert(offsetof(ControlHeader, segment_count) == 256);
static_assert(offsetof(ControlHeader, sessions_used_bytes) == 320);
static_assert(offsetof(ControlHeader, slots_high_water) == 384);
static_assert(offsetof(ControlHeader, event_sequence) == 448);

inline constexpr std::array<char, 8> control_magic{'E', 'S', 'K', 'E', 'R', 'C', 'T', 'L'};
inline constexpr std::uint32_t control_layout_version = 1;
inline constexpr std::size_t control_checksum_bytes = offsetof(ControlHeader, checksum);

inline constexpr std::size_t counters_per_seat = 24;

/// A seat: one opened handle. Diagnostics only, except `phase`.
struct SeatRecord {
  std::uint32_t phase;
  std::uint32_t pid;
  std::uint64_t start_ticks;
  std::uint64_t pid_namespace;
  std::uint64_t opened_unix_ns;
  std::array<char, 16> command;
  std::uint64_t node_random;
  std::uint64_t reserved;
  std::array<std::uint64_t, counters_per_seat> counters;
};
static_assert(std::is_trivially_copyable_v<SeatRecord>);
static_assert(sizeof(SeatRecord) == 256);
static_assert(offsetof(SeatRecord, phase) == 0);
static_assert(offsetof(SeatRecord, pid) == 4);
static_assert(offsetof(SeatRecord, start_ticks) == 8);
static_assert(offsetof(SeatRecord, pid_namespace) == 16);
static_assert(offsetof(SeatRecord, opened_unix_ns) == 24);
static_assert(offsetof(SeatRecord, command) == 32);
static_assert(offsetof(SeatRecord, node_random) == 48);
static_assert(offsetof(SeatRecord, reserved) == 56);
static_assert(offsetof(SeatRecord, counters) == 64);

/// Never renumber.
enum class SeatPhase : std::uint32_t { empty = 0, live = 1, reaping = 2 };

/// One entry of the event ring.
struct EventRecord {
  std::uint64_t sequence;
  std::uint64_t unix_ns;
  std::uint32_t kind;
  std::uint32_t pid;
  std::uint32_t block;
  std::int32_t os_error;
  std::uint32_t seat;
  std::array<char, 28> note;
};
static_assert(std::is_trivially_copyable_v<EventRecord>);
static_assert(sizeof(EventRecord) == 64);
static_assert(offsetof(EventRecord, sequence) == 0);
static_assert(offsetof(EventRecord, unix_ns) == 8);
static_assert(offsetof(EventRecord, kind) == 16);
static_assert(offsetof(EventRecord, pid) == 20);
static_assert(offsetof(EventRecord, block) == 24);
static_assert(offsetof(EventRecord, os_error) == 28);
static_assert(offsetof(EventRecord, seat) == 32);
static_assert(offsetof(EventRecord, note) == 36);

inline constexpr std::uint32_t event_ring_entries = 1024;
inline constexpr std::uint32_t hints_per_bucket = 16;

/// Offsets and sizes of the areas, computed from the superblock's numbers.
struct ControlLayout {
  std::uint32_t seats = 0;
  std::uint32_t max_blocks = 0;
  std::uint32_t segment_blocks = 0;
  std::uint32_t buckets = 0;
  std::uint32_t row_bytes = 0;
  std::uint64_t slots_offset = 0;
  std::uint64_t words_offset = 0;
  std::uint64_t checks_offset = 0;
  std::uint64_t touches_offset = 0;
  std::uint64_t rows_offset = 0;
  std::uint64_t hints_offset = 0;
  std::uint64_t events_offset = 0;
  std::uint64_t file_bytes = 0;

  ControlLayout() = default;
  ControlLayout(std::uint32_t max_blocks, std::uint32_t segment_blocks, std::uint32_t seats);
};

}  // namespace esker::detail
