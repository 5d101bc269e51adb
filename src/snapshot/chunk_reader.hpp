#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "archive/reader.hpp"
#include "snapshot/tables.hpp"

namespace esker::detail {

/// Rows of a file by node, decoded chunk by chunk; the last chunk is kept, since neighbours ask for
/// its other rows next. One thread at a time.
class ChunkReader {
 public:
  ChunkReader(const ArchiveReader& reader, const SnapshotTables& tables)
      : reader_(reader), tables_(tables), row_bytes_(plane_row_bytes(reader.head().geometry)) {}

  /// Rows [rows.begin, rows.end) of a node's plane into exactly their bytes.
  [[nodiscard]] Result<void> read(std::uint32_t node, std::size_t plane, TokenRange rows,
                                  std::span<std::byte> out);
  /// True when the chunk of this row is the one that was decoded last.
  [[nodiscard]] bool holds(std::uint32_t node, std::size_t plane, std::uint32_t row) const noexcept;

 private:
  [[nodiscard]] Result<void> load(std::uint32_t span, const ChunkPlace& chunk,
                                  std::uint32_t row_bytes);

  const ArchiveReader& reader_;
  const SnapshotTables& tables_;
  std::vector<std::uint32_t> row_bytes_;
  CodecMemory memory_;
  std::vector<std::byte> rows_;
  const ChunkPlace* loaded_ = nullptr;  ///< whose rows they are
};

}  // namespace esker::detail
