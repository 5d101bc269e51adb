// Invariants
// 1. What is kept are the rows of one chunk, whole and checked, or nothing.
#include "snapshot/chunk_reader.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"

namespace esker::detail {

Result<void> ChunkReader::load(std::uint32_t span, const ChunkPlace& chunk,
                               std::uint32_t row_bytes) {
  if (loaded_ == &chunk) return {};
  loaded_ = nullptr;
  if (chunk.rows > chunk_rows(row_bytes)) {
    return fail_field(Errc::corrupt, reader_.label(), "rows of a chunk", std::to_string(chunk.rows),
                      "at most " + std::to_string(chunk_rows(row_bytes)));
  }
  rows_.resize(std::size_t{chunk.rows} * row_bytes);
  auto done = reader_.chunk_at(tables_.index().spans[span], chunk, rows_, memory_);
  if (done) loaded_ = &chunk;
  return done;
}

bool ChunkReader::holds(std::uint32_t node, std::size_t plane, std::uint32_t row) const noexcept {
  if (loaded_ == nullptr) return false;
  const auto place = tables_.place_of(node);
  return tables_.chunk(place.span, plane, place.row + row) == loaded_;
}

Result<void> ChunkReader::read(std::uint32_t node, std::size_t plane, TokenRange rows,
                               std::span<std::byte> out) {
  const std::uint32_t row_bytes = row_bytes_[plane];
  const auto place = tables_.place_of(node);
  std::uint32_t row = place.row + rows.begin;
  while (!out.empty()) {
    const ChunkPlace* chunk = tables_.chunk(place.span, plane, row);
    if (chunk == nullptr) {
      return fail(Errc::corrupt, reader_.label() + ": no chunk holds row " + std::to_string(row) +
                                     " of plane " + std::to_string(plane) + " of node " +
                                     std::to_string(node));
    }
    if (auto done = load(place.span, *chunk, row_bytes); !done) return done;
    const std::uint32_t first = row - chunk->first_row;
    const auto left = static_cast<std::uint32_t>(out.size() / row_bytes);
    const std::uint32_t now = std::min(left, chunk->rows - first);
    const std::size_t bytes = std::size_t{now} * row_bytes;
    std::memcpy(out.data(), rows_.data() + std::size_t{first} * row_bytes, bytes);
    out = out.subspan(bytes);
    row += now;
  }
  return {};
}

}  // namespace esker::detail
