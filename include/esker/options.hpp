#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace esker {

/// What a handle may do.
enum class Access : std::uint8_t {
  write,    ///< everything
  read,     ///< look up and copy; takes a seat and pins, so it needs write permission on the files
  inspect,  ///< for tools and read-only mounts: no seat, no pin, nothing is written. `copy`
            ///< verifies every time, since others may recycle a block; there are no views.
};

/// When the payload checksum of a block is compared. Headers are always proved.
enum class Verify : std::uint8_t {
  first_use,  ///< once per handle and block, inside `Prefix::copy` or `Prefix::view` (default)
  always,     ///< at every `copy` and `view`
  at_lookup,  ///< in `lookup`: the length it returns is certain, at the cost of reading all of it
  never,      ///< only where this boot's control file cannot vouch for the block
};

/// How the rows of cold files and snapshots are compressed, chunk by chunk; what does not shrink is
/// stored raw. Never renumber: stored in files.
enum class Compression : std::uint8_t { raw = 0, lz4 = 1, zstd = 2 };

[[nodiscard]] std::string_view name(Compression compression) noexcept;

/// Who may open the store.
enum class Sharing : std::uint8_t {
  owner,  ///< directory 0700, files 0600
  group,  ///< directory 2770, files 0660: for workers that run under several user ids
};

/// How a store is created and opened. The defaults suit an engine.
/// Threads:  a plain value.
/// Lifetime: read during the call only.
/// Errors:   values out of range are `Errc::invalid` when the store is opened.
/// Cost:     none.
struct Options {
  // Behaviour of this handle.

  Access access = Access::write;
  Verify verify = Verify::first_use;

  /// Longest time that `open` waits for another opener that is just building the store's control
  /// file. Nothing else in the library ever waits for another process.
  std::uint32_t open_deadline_ms = 5000;

  /// `lookup`, `reserve` and `Session::resume` bring back what is cold, at once: a lookup that
  /// needs it takes as long as `thaw`. Without it they see what is in the segments.
  bool thaw = false;

  /// What this handle evicts becomes cold instead of being dropped: `reserve` then takes as long as
  /// compressing it.
  bool freeze_evicted = false;

  /// Opens stores on NFS, FUSE, SMB, 9p and overlay file systems too. Their mappings and locks are
  /// not coherent between hosts or layers: only for a single process, at your own risk.
  bool allow_unsafe_file_system = false;

  /// Opening and using the store is a use of it: see stores_of_home and enforce_budget in home.hpp.
  /// Who only looks after it says false, so that an unused store is recognised as one.
  bool counts_as_use = true;

  /// Bytes of the file system that this handle's growth leaves to others: at the limit it evicts.
  /// UINT64_MAX: what the home of the store says (see KeepFree), by default a tenth, at least
  /// 10 GiB, at most half of the file system. The first segment only has to fit.
  std::uint64_t keep_free_bytes = UINT64_MAX;

  // Fixed when the store is created, ignored afterwards.

  /// Cap for all files of the store together. 0: a quarter of the free space of the file system,
  /// at most 64 GiB. Reached, the least recently used blocks make room.
  std::uint64_t capacity_bytes = 0;

  /// The part of it that is set aside for cold blocks, see Store::freeze. 0: none.
  std::uint64_t cold_bytes = 0;

  Sharing sharing = Sharing::owner;

  /// How many handles can be open at a time, 1…4,095. Each costs a bit per block.
  std::uint32_t seats = 128;

  /// Size of one segment file; 0 chooses capacity/64 within 64 MiB…16 GiB (tmpfs: 256 MiB at most).
  /// Tests and very small stores set it; nobody else should.
  std::uint64_t segment_bytes = 0;
};

/// Called with (done, total) bytes by long operations, on the calling thread.
using Progress = std::function<void(std::uint64_t, std::uint64_t)>;

}  // namespace esker
