#pragma once

#include <array>
#include <cstdint>
#include <esker/result.hpp>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "archive/byte_sink.hpp"
#include "archive/node_table.hpp"
#include "archive/nodes.hpp"
#include "codec/codec.hpp"

namespace esker::detail {

/// Puts rows [first_row, first_row + count) of a span's plane into `out`. Called from several
/// threads at once, each for other rows.
using RowReader = std::function<Result<void>(std::size_t plane, std::uint32_t first_row,
                                             std::span<std::byte> out)>;

struct WriterOptions {
  CodecChoice codec;
  std::uint32_t threads = 1;
};

struct WriterTotals {
  std::uint64_t nodes = 0;  ///< that have rows
  std::uint64_t rows = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::array<ErrorSums, 2> errors;  ///< K, V
};

/// Writes a snapshot from front to back. After an error nothing more can be written.
class ArchiveWriter {
 public:
  /// Writes head and namespaces. `sink` outlives the writer.
  [[nodiscard]] static Result<ArchiveWriter> start(ByteSink& sink, const SnapshotHead& head,
                                                   std::span<const ArchiveNamespace> namespaces,
                                                   const WriterOptions& options);
  ArchiveWriter(ArchiveWriter&&) noexcept;
  ArchiveWriter& operator=(ArchiveWriter&&) noexcept;
  ~ArchiveWriter();

  /// The most rows that a span should have, so that chunks are large and the span is not.
  [[nodiscard]] std::uint32_t span_rows() const noexcept;
  /// Codes all rows before anything is written: when `rows` fails, the file stands as before, and
  /// the span can be tried again without what failed. `nodes` are numbered on from the last span.
  [[nodiscard]] Result<void> span(const ArchiveSpan& span, const RowReader& rows);
  [[nodiscard]] std::uint32_t next_node() const noexcept;
  /// What was written so far; also serves to find parents.
  [[nodiscard]] const NodeTable& nodes() const noexcept;
  /// After all spans.
  [[nodiscard]] Result<void> session(const ArchiveSession& session,
                                     std::span<const ArchiveState> states);
  /// Writes index and end. The sink is not synced or closed.
  [[nodiscard]] Result<WriterTotals> finish();

 private:
  struct State;
  explicit ArchiveWriter(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace esker::detail
