#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/prefix.hpp>
#include <esker/result.hpp>
#include <esker/snapshot_info.hpp>
#include <esker/store.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace esker {

namespace detail {
class SnapshotSource;
}  // namespace detail

/// A portable, compressed, checksummed file of paths and sessions (doc/snapshot_format.md), opened
/// to be read: from a file, which can be searched, or from a pipe, which can be read once.
/// Threads:  one at a time.
/// Lifetime: keeps its file open, but not a descriptor that it was given.
/// Errors:   `Errc::corrupt` names file, frame and field; `Errc::incompatible` a newer version;
///           `Errc::invalid` for a question that a pipe cannot answer.
/// Cost:     opening reads the head, and of a file the index. Never more memory than twice the
///           largest chunk per thread (1 MiB, or one row), and the tables that the file holds.
class Snapshot {
 public:
  [[nodiscard]] static Result<Snapshot> open(const std::string& path);
  /// Reads from where `fd` stands. `label` stands for the path in messages.
  [[nodiscard]] static Result<Snapshot> open(int fd, const std::string& label);

  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(Snapshot&&) noexcept;
  ~Snapshot();

  [[nodiscard]] const SnapshotInfo& info() const noexcept;
  [[nodiscard]] const Geometry& geometry() const noexcept;
  [[nodiscard]] const ModelId& model() const noexcept;
  /// True for a regular file: everything below works, as often as you like. Of a stream only
  /// `verify` or one import does.
  [[nodiscard]] bool seekable() const noexcept;

  [[nodiscard]] Result<SnapshotContents> contents() const;
  /// The tokens of a path, or of a session by name.
  [[nodiscard]] Result<std::vector<std::int32_t>> token_ids(std::uint64_t path) const;
  [[nodiscard]] Result<std::vector<std::int32_t>> session_token_ids(const std::string& name) const;
  /// The index of the namespace of this name, in clear or by its digest: each question about a
  /// digest takes milliseconds and 16 MiB. `Errc::missing` when it is not here.
  [[nodiscard]] Result<std::uint32_t> find_namespace(std::string_view name) const;
  /// How many of these tokens are stored here; namespace by index into the contents' list.
  [[nodiscard]] Result<std::uint32_t> match(Tokens tokens, std::uint32_t name_space = 0) const;
  /// Rows of these tokens, decoded and checked; reads only the chunks that hold them. `out` holds
  /// exactly the rows of `range`, which ends within what `match` says.
  [[nodiscard]] Result<void> copy(Tokens tokens, std::uint32_t name_space, std::uint32_t layer,
                                  Plane plane, TokenRange range, std::span<std::byte> out) const;
  /// Reads, decodes and compares everything. Damage is reported, not returned as an error.
  [[nodiscard]] Result<SnapshotCheck> verify(const Progress& progress = {});

 private:
  friend class SnapshotAccess;
  explicit Snapshot(std::shared_ptr<detail::SnapshotSource> source) noexcept;
  std::shared_ptr<detail::SnapshotSource> source_;
};

// Writing and reading whole snapshots.
// Threads:  a call may use several (`threads`), and none after it has returned.
// Cost:     each row is read and checked once; memory is bounded by a few spans of at most 64 MiB.

/// Writes what `options` names. The file appears under its name when it is whole; killed or failed
/// before, nothing does. Blocks are pinned only while they are read, so writers go on; what they
/// evict before it was reached is left out and counted.
[[nodiscard]] Result<ExportReport> export_snapshot(const Store& store, const std::string& path,
                                                   const ExportOptions& options = {});
/// The same to a pipe, a socket or an open file, from where it stands.
[[nodiscard]] Result<ExportReport> export_snapshot(const Store& store, int fd,
                                                   const std::string& label,
                                                   const ExportOptions& options = {});

/// Stores what the snapshot holds and the store lacks. Killed or failed in between, what was
/// stored stays; the next import goes on there. `Errc::incompatible` names how geometry or model
/// id differ.
[[nodiscard]] Result<ImportReport> import_snapshot(Store& store, Snapshot& snapshot,
                                                   const ImportOptions& options = {});

/// What `rewrite_snapshots` takes over.
struct RewriteOptions {
  std::vector<std::string> sessions;  ///< only these and their paths; all when empty
  Compression compression = Compression::lz4;
  int level = 0;
  Lossy lossy = Lossy::none;  ///< exact inputs only
  std::uint32_t threads = 1;
  bool replace = false;
  Progress progress;
};

/// One snapshot out of several: their union, chunks coded anew. All must be seekable, of one
/// geometry and one model id. Of blocks that several hold, and of sessions, the first counts.
[[nodiscard]] Result<ExportReport> rewrite_snapshots(std::span<Snapshot> inputs,
                                                     const std::string& path,
                                                     const RewriteOptions& options = {});
[[nodiscard]] Result<ExportReport> rewrite_snapshots(std::span<Snapshot> inputs, int fd,
                                                     const std::string& label,
                                                     const RewriteOptions& options = {});

}  // namespace esker
