#pragma once

#include <cstdint>
#include <esker/result.hpp>
#include <esker/snapshot_info.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "archive/byte_source.hpp"
#include "archive/node_table.hpp"
#include "archive/nodes.hpp"
#include "codec/codec.hpp"
#include "region/file.hpp"

namespace esker::detail {

/// Takes rows [first_row, first_row + rows.size() / row_bytes) of a span's plane. Called from
/// several threads at once, each for other rows. An error ends `rows`, and `next` can go on.
using RowTaker = std::function<Result<void>(std::size_t plane, std::uint32_t first_row,
                                            std::span<const std::byte> rows)>;
/// Which rows of a span are wanted; a chunk without any is skipped undecoded.
using RowFilter = std::function<bool(std::uint32_t first_row, std::uint32_t rows)>;

struct ArchiveEnd {
  std::uint64_t frames = 0;
};
struct SessionWithStates {
  ArchiveSession session;
  std::vector<ArchiveState> states;
  std::uint64_t end = 0;  ///< where its last frame ends; 0 when read front to back
};
using ArchivePart = std::variant<ArchiveSpan, SessionWithStates, ArchiveEnd>;

/// Where a plane's chunk stands.
struct ChunkPlace {
  std::uint64_t offset = 0;  ///< of its frame header
  std::uint32_t plane = 0;
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint64_t stored_bytes = 0;
  ChunkCoding coding;
  std::uint64_t sequence = 0;  ///< of its frame
  std::uint64_t checksum = 0;  ///< of its frame header: the one at `offset` must be the same
};
struct SpanPlace {
  std::uint64_t offset = 0;
  std::uint64_t sequence = 0;
  std::uint32_t first_node = 0;
  std::uint32_t nodes = 0;
  std::vector<ChunkPlace> chunks;
};
struct ArchiveIndex {
  std::vector<SpanPlace> spans;
  std::vector<std::uint64_t> sessions;  ///< offsets of their frames
};

/// Reads a snapshot from front to back, or, of a file, anything by the index. Everything read is
/// checked before it is used; lengths are compared before memory is taken. Whatever a file says,
/// memory is at most the sum of: 2 MiB; 8 times the bytes of namespaces, nodes, one session with
/// its states, and the index that have really been read; and per thread that decodes, 4 times the
/// largest chunk (1 MiB, or one row).
/// Threads: `next` and `rows` one at a time; what is const, from several.
class ArchiveReader {
 public:
  /// Takes the file over. Reads head and namespaces.
  [[nodiscard]] static Result<ArchiveReader> open(File file);
  /// Reads `fd` from where it stands, once; it stays the caller's.
  [[nodiscard]] static Result<ArchiveReader> open_stream(int fd, std::string label);
  ArchiveReader(ArchiveReader&&) noexcept;
  ArchiveReader& operator=(ArchiveReader&&) noexcept;
  ~ArchiveReader();

  [[nodiscard]] const SnapshotHead& head() const noexcept;
  [[nodiscard]] const std::vector<ArchiveNamespace>& namespaces() const noexcept;
  [[nodiscard]] bool seekable() const noexcept;
  [[nodiscard]] const std::string& label() const noexcept;
  [[nodiscard]] std::uint64_t file_bytes() const noexcept;  ///< 0: not known
  [[nodiscard]] std::uint64_t position() const noexcept;    ///< bytes read so far, in order
  [[nodiscard]] const std::vector<RowShape>& planes() const noexcept;
  /// The nodes of all spans that `next` has returned.
  [[nodiscard]] const NodeTable& nodes() const noexcept;

  // Front to back.

  /// The next part. Rows of a span that were not taken are skipped. After an error it fails again.
  [[nodiscard]] Result<ArchivePart> next();
  /// Decodes the rows of the span that `next` has just returned, once; of it, chunks with wanted
  /// rows only.
  [[nodiscard]] Result<void> rows(const RowFilter& wanted, const RowTaker& taker,
                                  std::uint32_t threads);

  // By the index, of a file. Does not move `next`.

  [[nodiscard]] Result<ArchiveIndex> index() const;
  /// Checks the span by itself; NodeTable::add does it together with those before it.
  [[nodiscard]] Result<ArchiveSpan> span_at(const SpanPlace& place) const;
  /// Decodes one chunk into `out`, which has exactly its rows.
  [[nodiscard]] Result<void> chunk_at(const SpanPlace& span, const ChunkPlace& place,
                                      std::span<std::byte> out, CodecMemory& memory) const;
  [[nodiscard]] Result<SessionWithStates> session_at(std::uint64_t offset) const;

 private:
  friend Result<SnapshotCheck> check_archive(ArchiveReader& reader, const Progress& progress);
  struct State;
  class RowRun;
  class Check;
  [[nodiscard]] static Result<ArchiveReader> start(ByteSource source);
  explicit ArchiveReader(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// Reads all of it from front to back and reports damage by frame, offset and field; goes on behind
/// a damaged payload, and in a file behind a damaged frame header. `reader` has just been opened.
[[nodiscard]] Result<SnapshotCheck> check_archive(ArchiveReader& reader, const Progress& progress);

}  // namespace esker::detail
