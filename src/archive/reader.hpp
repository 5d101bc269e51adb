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

#include "archive/nodes.hpp"
#include "codec/codec.hpp"
#include "region/file.hpp"

namespace esker::detail {

/// Takes rows [first_row, first_row + rows.size() / row_bytes) of a span's plane. Called from
/// several threads at once, each for other rows.
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
/// checked before it is used; lengths are compared before memory is taken.
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

  // Front to back.

  /// The next part. Rows of a span that were not taken are skipped.
  [[nodiscard]] Result<ArchivePart> next();
  /// Decodes the rows of the span that `next` has just returned, wanted planes and rows only.
  [[nodiscard]] Result<void> rows(const RowFilter& wanted, const RowTaker& taker,
                                  std::uint32_t threads);

  // By the index, of a file. Does not move `next`.

  [[nodiscard]] Result<ArchiveIndex> index() const;
  [[nodiscard]] Result<ArchiveSpan> span_at(const SpanPlace& place) const;
  /// Decodes one chunk into `out`, which has exactly its rows.
  [[nodiscard]] Result<void> chunk_at(const SpanPlace& span, const ChunkPlace& place,
                                      std::span<std::byte> out, CodecMemory& memory) const;
  [[nodiscard]] Result<SessionWithStates> session_at(std::uint64_t offset) const;

 private:
  struct State;
  explicit ArchiveReader(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// Reads all of it and reports damage; goes on behind a damaged payload.
[[nodiscard]] Result<SnapshotCheck> check_archive(ArchiveReader& reader, const Progress& progress);

}  // namespace esker::detail
