#pragma once

#include <cstdint>
#include <esker/block_info.hpp>
#include <esker/geometry.hpp>
#include <esker/options.hpp>
#include <esker/prefix.hpp>
#include <esker/reservation.hpp>
#include <esker/resize.hpp>
#include <esker/result.hpp>
#include <esker/stats.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace esker {

namespace detail {
class Core;
}  // namespace detail

/// The root that a path starts from, 0…64 opaque bytes: tenant salt, LoRA digest… Paths of
/// different namespaces never see each other. Longer names: pass a digest.
using Namespace = std::string_view;

/// An engine's own page hash, 1…64 opaque bytes, for `lookup_keys` and `reserve_keys`.
using Key = std::string_view;

/// A directory of KV blocks, shared by every process that opens it.
/// Threads:  every member from any thread at once. Any number of processes and handles.
/// Lifetime: prefixes and reservations keep what they need alive; destroy in any order. After fork
///           the child's handle answers `Errc::forked` (lookups: a miss) and must be opened anew.
/// Errors:   per member. Nothing waits for another process, except `open` for another opener.
/// Cost:     one mapping per segment and 12 bytes of (untouched) memory per block.
class Store {
 public:
  /// Makes a new store. `Errc::invalid` when something is there already.
  [[nodiscard]] static Result<Store> create(const std::string& path, const Geometry& geometry,
                                            const ModelId& model, const Options& options = {});
  /// Opens what is there, whatever its geometry and model. `Errc::missing` when nothing is,
  /// `Errc::busy` when every seat is taken by the living, `Errc::incompatible` for another version.
  [[nodiscard]] static Result<Store> open(const std::string& path, const Options& options = {});
  /// Opens a store that must have this geometry and model id: `Errc::incompatible` names
  /// differences.
  [[nodiscard]] static Result<Store> open(const std::string& path, const Geometry& geometry,
                                          const ModelId& model, const Options& options = {});
  /// The above, or creates the store. Several processes may do this at once: one creates.
  [[nodiscard]] static Result<Store> open_or_create(const std::string& path,
                                                    const Geometry& geometry, const ModelId& model,
                                                    const Options& options = {});
  /// Deletes a store. `Errc::busy` while anyone has it open. Removes only files that it knows; a
  /// directory that holds others stays, with a message that names the first of them.
  [[nodiscard]] static Result<void> destroy(const std::string& path);
  /// Gives a store another capacity. `Errc::busy` while anyone has it open, `Errc::full` where what
  /// kept sessions hold would not fit, with the least capacity that does. Made smaller, segment
  /// files go: what was used most recently moves into those that stay, the rest is dropped. Killed
  /// at any point, the store opens with the one size or the other.
  [[nodiscard]] static Result<Resized> resize(const std::string& path,
                                              const ResizeOptions& options);

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// How many leading tokens are stored: advice for schedulers and routers. Pins nothing.
  [[nodiscard]] std::uint32_t match(Tokens tokens, Namespace name_space = {}) const noexcept;

  /// The longest stored path for `tokens`, pinned. Proves headers, labels and parents, so the path
  /// is right whatever collides; payloads are verified when they are used. On any doubt it is a
  /// miss.
  /// Cost: about 0.1 us per block; no allocation once warm; a system call only when another
  /// process has added a segment since.
  [[nodiscard]] Prefix lookup(Tokens tokens, Namespace name_space = {}) const noexcept;

  /// The path with this name (see Prefix::path), found by scanning all headers. `Errc::invalid`
  /// when there is none.
  [[nodiscard]] Result<Prefix> lookup_path(std::uint64_t path) const;

  /// Room for what is missing of `tokens`. Evicts, under the cap, what was least recently used.
  [[nodiscard]] Result<Reservation> reserve(Tokens tokens, Namespace name_space = {}) noexcept;

  /// For engines that bring their own page hashes: which of the keys are stored. `found[i]` is
  /// advice. Returns the length of the leading run.
  std::uint32_t match_keys(std::span<const Key> keys, std::span<bool> found,
                           Namespace name_space = {}) const noexcept;
  /// The leading run of keys that exist, pinned; key i covers tokens [i, i + 1) × block_tokens.
  [[nodiscard]] Prefix lookup_keys(std::span<const Key> keys,
                                   Namespace name_space = {}) const noexcept;
  /// Room for the keys that are not stored. Every key block holds `block_tokens` rows.
  [[nodiscard]] Result<Reservation> reserve_keys(std::span<const Key> keys,
                                                 Namespace name_space = {}) noexcept;

  /// Frees the least recently used blocks until at most `target_bytes` of blocks are stored.
  [[nodiscard]] Result<Freed> evict(std::uint64_t target_bytes, bool dry_run = false);
  /// Frees every block that was last used before `unix_ns`, to a sixteenth of a second.
  [[nodiscard]] Result<Freed> evict_older_than(std::uint64_t unix_ns, bool dry_run = false);
  /// Forgets paths by name: the leaf, what hangs below it, and its ancestors up to the last fork.
  /// The freed blocks are wiped on disk. What a reader pins is wiped by the next `remove` or
  /// `trim`.
  [[nodiscard]] Result<Freed> remove(std::span<const std::uint64_t> paths, bool dry_run = false);
  /// Returns the disk space of free blocks until the file system has `keep_free_bytes` free.
  [[nodiscard]] Result<Freed> trim(std::uint64_t keep_free_bytes, bool dry_run = false);
  /// Moves blocks that were last used before `unix_ns` into compressed files below `cold/`, the
  /// oldest first; kept and pinned ones stay. Beyond the share that was set aside for cold blocks
  /// the files that were used least recently go. `Errc::invalid` for a store without such a share.
  /// Killed at any point, a block is in one place or in both.
  [[nodiscard]] Result<Frozen> freeze(std::uint64_t unix_ns, const FreezeOptions& options = {});
  /// Brings cold blocks of this prompt back into the segments, and returns how many leading tokens
  /// are stored now. Evicts, under the cap, what was least recently used.
  /// Cost: reads and decodes the chunks that hold them, at about the speed of LZ4.
  [[nodiscard]] Result<std::uint32_t> thaw(Tokens tokens, Namespace name_space = {});
  /// Lets a thread of this handle do so; it starts with the first call and ends with the handle.
  /// False: nothing of this prompt is cold, or too many wait already.
  bool prefetch(Tokens tokens, Namespace name_space = {}) noexcept;

  /// Cleans up after dead processes now. It also happens by itself. Returns the seats reaped.
  [[nodiscard]] Result<std::uint32_t> reap();

  /// Reads every header and payload from the files and checks all of it.
  [[nodiscard]] Result<VerifyReport> verify(const Progress& progress = {}) const;
  /// Waits until everything published so far is on disk. Never needed against crashes of processes.
  [[nodiscard]] Result<void> sync() const;

  [[nodiscard]] const Geometry& geometry() const noexcept;
  [[nodiscard]] const ModelId& model() const noexcept;
  [[nodiscard]] Result<Info> info() const;
  [[nodiscard]] Stats stats() const noexcept;
  [[nodiscard]] std::vector<Process> processes() const;
  /// Events with a sequence number above `since`, oldest first; the ring keeps the last 1,024.
  [[nodiscard]] std::vector<Event> events(std::uint64_t since = 0) const;
  /// All paths that end in a leaf. Reads every header.
  [[nodiscard]] Result<std::vector<PathInfo>> paths() const;
  /// All stored blocks, parents before their children: the trie itself. Reads every header.
  [[nodiscard]] Result<std::vector<BlockInfo>> blocks() const;

 private:
  friend class Session;
  friend class SnapshotAccess;
  explicit Store(std::shared_ptr<detail::Core> core) noexcept;
  std::shared_ptr<detail::Core> core_;
};

}  // namespace esker
