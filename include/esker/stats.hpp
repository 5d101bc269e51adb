#pragma once

#include <array>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/options.hpp>
#include <esker/result.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace esker {

/// Static facts of a store, read from its superblock.
struct Info {
  std::string path;
  std::array<std::uint8_t, 16> uuid{};
  std::uint32_t write_version = 0;
  std::uint32_t read_version = 0;
  std::uint64_t created_unix_ns = 0;
  Geometry geometry;
  ModelId model;
  Sharing sharing = Sharing::owner;
  std::uint64_t capacity_bytes = 0;
  std::uint64_t segments_bytes = 0;  ///< share of the capacity for segment files
  std::uint64_t cold_bytes = 0;      ///< share for compressed blocks
  std::uint64_t segment_file_bytes = 0;
  std::uint32_t segment_blocks = 0;
  std::uint32_t max_segments = 0;
  std::uint32_t seats = 0;

  // Counted from the directory.
  std::uint32_t segments = 0;
  std::uint64_t disk_bytes = 0;  ///< allocated by all files of the store
  std::int64_t last_used_unix_ns = 0;
};

/// Events since the store's control file was built, at the latest since boot; summed over all
/// processes, dead ones included.
struct Counters {
  std::uint64_t lookups = 0;
  std::uint64_t lookup_tokens = 0;    ///< tokens asked for
  std::uint64_t hit_tokens = 0;       ///< tokens found
  std::uint64_t misses = 0;           ///< lookups that found nothing
  std::uint64_t degraded_misses = 0;  ///< of these: out of memory, or a wait that was refused
  std::uint64_t reserved_tokens = 0;
  std::uint64_t published_blocks = 0;
  std::uint64_t published_tokens = 0;
  std::uint64_t adopted_blocks = 0;      ///< published by another process first
  std::uint64_t dropped_blocks = 0;      ///< reserved, never published
  std::uint64_t short_reservations = 0;  ///< a full cache stored less than asked
  std::uint64_t evicted_blocks = 0;
  std::uint64_t removed_blocks = 0;
  std::uint64_t superseded_blocks = 0;
  std::uint64_t bad_blocks = 0;  ///< checksum did not hold; never served again
  std::uint64_t reaped_seats = 0;
  std::uint64_t displaced_hints = 0;
  std::uint64_t copied_bytes = 0;
  std::uint64_t verified_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t frozen_blocks = 0;
  std::uint64_t thawed_blocks = 0;
};

/// A snapshot of what a store holds. Not atomic as a whole while others work.
struct Stats {
  std::uint64_t blocks_free = 0;
  std::uint64_t blocks_reserved = 0;
  std::uint64_t blocks_ready = 0;
  std::uint64_t blocks_retired = 0;
  std::uint64_t blocks_bad = 0;
  std::uint64_t blocks_total = 0;  ///< in the segments that exist
  std::uint64_t blocks_pinned = 0;
  std::uint64_t blocks_kept = 0;  ///< of kept sessions: never evicted
  std::uint64_t block_bytes = 0;
  std::uint64_t store_bytes = 0;  ///< blocks_ready × block_bytes
  std::uint64_t file_bytes = 0;   ///< control, superblock and segments
  std::uint32_t segments = 0;
  std::uint32_t segments_unusable = 0;  ///< missing or damaged segment files
  std::uint32_t cold_files = 0;
  std::uint64_t cold_blocks = 0;     ///< also those that are in the segments as well
  std::uint64_t cold_raw_bytes = 0;  ///< before they were compressed
  std::uint64_t cold_file_bytes = 0;
  std::uint32_t seats_taken = 0;
  std::uint64_t since_unix_ns = 0;  ///< when the counters started
  Counters counters;
};

/// One handle that has the store open. Diagnostics: no decision is ever based on it.
struct Process {
  std::uint32_t seat = 0;
  std::uint32_t pid = 0;
  bool alive = false;
  std::string command;
  std::uint64_t opened_unix_ns = 0;
  std::uint64_t pinned_blocks = 0;
  std::uint64_t reserved_blocks = 0;
};

/// Never renumber: stored in the control file.
enum class EventKind : std::uint32_t {
  seat_reaped = 1,
  block_bad = 2,
  segment_added = 3,
  control_rebuilt = 4,
  attach_refused = 5,
  growth_failed = 6,
  segment_unusable = 7,
  degraded = 8,
  removed = 9,
  cold_damaged = 10,
  budget_removed = 11,
};

[[nodiscard]] std::string_view name(EventKind kind) noexcept;

/// Something worth knowing that happened in some process. Never contains tokens.
struct Event {
  std::uint64_t sequence = 0;
  std::uint64_t unix_ns = 0;
  EventKind kind = EventKind::degraded;
  std::uint32_t pid = 0;
  std::uint32_t block = 0;
  std::int32_t os_error = 0;
  std::uint32_t seat = 0;
  std::string note;
};

/// A path that ends in a leaf of the trie, or one block of opaque key.
struct PathInfo {
  std::uint64_t path = 0;  ///< Prefix::path of the leaf: what commands print and accept
  std::uint32_t tokens = 0;
  std::uint32_t blocks = 0;
  std::uint64_t bytes = 0;      ///< all blocks of the path
  std::uint64_t own_bytes = 0;  ///< blocks that no other path shares
  std::uint64_t published_unix_ns = 0;
  std::uint64_t last_used_unix_ns = 0;
  std::uint32_t pins = 0;             ///< handles that pin the leaf
  bool key = false;                   ///< an opaque key block
  std::string name_space;             ///< the namespace's bytes as they are
  std::vector<std::string> sessions;  ///< whose tokens end on this path
};

/// What `Store::remove`, `evict` and `trim` did, or would do.
struct Freed {
  std::uint64_t paths = 0;  ///< named paths; 0 for evict and trim, which think in blocks
  std::uint64_t blocks = 0;
  std::uint64_t reusable_bytes = 0;  ///< freed for reuse inside the store
  std::uint64_t disk_bytes = 0;      ///< returned to the file system (and thereby wiped)
  std::uint64_t pinned_blocks = 0;   ///< wanted, but a reader holds them: freed when it lets go
  std::uint64_t kept_blocks = 0;     ///< wanted, but a kept session holds them
  /// Of removed sessions, but other sessions or paths go through them: they stay.
  std::uint64_t shared_blocks = 0;
};

/// How `Store::freeze` goes about it.
struct FreezeOptions {
  std::uint64_t most_bytes = UINT64_MAX;  ///< of blocks, before they are compressed
  Compression compression = Compression::lz4;
  int level = 0;              ///< of zstd; see ExportOptions
  std::uint32_t threads = 1;  ///< that encode; 1 is the calling thread alone
  bool dry_run = false;
  Progress progress;  ///< in bytes of blocks
};

/// What it did, or would do.
struct Frozen {
  std::uint64_t blocks = 0;
  std::uint64_t known_blocks = 0;    ///< of these: a cold copy was there already
  std::uint64_t raw_bytes = 0;       ///< of the blocks that were compressed
  std::uint64_t cold_bytes = 0;      ///< of the new files
  std::uint64_t dropped_blocks = 0;  ///< of old cold files that had to go
  std::uint64_t pinned_blocks = 0;   ///< old enough, but in use
  std::uint64_t kept_blocks = 0;     ///< old enough, but of kept sessions
};

/// Damage that `Store::verify` found, in words that name file and field.
struct Damage {
  std::string file;
  std::uint32_t block = 0;
  std::string what;
};

struct VerifyReport {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t changed = 0;     ///< recycled by others while they were read: not judged
  std::uint64_t sessions = 0;    ///< good ones
  std::uint64_t cold_files = 0;  ///< good ones
  std::vector<Damage> damage;
};

/// Reads a store's superblock without a seat and without writing anything.
[[nodiscard]] Result<Info> inspect(const std::string& path);

}  // namespace esker
