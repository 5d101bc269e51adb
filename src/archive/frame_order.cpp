// Invariants
// 1. Chunks of a span are all there, each once, in order, before the next group begins.
// 2. The index is compared by length and sum of what was seen, so that a stream needs no memory
//    for it.
#include "archive/frame_order.hpp"

#include <algorithm>
#include <string>

#include "archive/damage.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "format/block_header.hpp"

namespace esker::detail {

namespace {

std::string_view kind_name(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::namespaces:
      return "namespaces";
    case FrameKind::span:
      return "span";
    case FrameKind::chunk:
      return "chunk";
    case FrameKind::session:
      return "session";
    case FrameKind::state:
      return "state";
    case FrameKind::index:
      return "index";
    case FrameKind::end:
      return "end";
  }
  return "unknown";
}

constexpr std::uint64_t namespace_frame_bytes = sizeof(SnapshotNamespaceHead) + max_namespace_bytes;

}  // namespace

std::uint64_t chunks_of(std::uint32_t rows, const std::vector<RowShape>& planes) noexcept {
  std::uint64_t chunks = 0;
  for (const RowShape& plane : planes) chunks += div_ceil(rows, chunk_rows(plane.row_bytes));
  return chunks;
}

std::uint32_t ChunkCursor::rows(const std::vector<RowShape>& planes) const noexcept {
  return std::min(chunk_rows(planes[plane].row_bytes), span_rows - first_row);
}

void ChunkCursor::step(const std::vector<RowShape>& planes) noexcept {
  first_row += rows(planes);
  if (first_row < span_rows) return;
  first_row = 0;
  ++plane;
}

Result<void> check_chunk_frame(const FrameHeader& frame, const ChunkCursor& cursor,
                               const std::vector<RowShape>& planes, Lossy lossy,
                               std::string_view where) {
  if (cursor.done(planes.size())) {
    return fail_field(Errc::corrupt, where, "kind", "chunk", "no more chunks of this span");
  }
  if (frame.number != cursor.plane) {
    return bad(where, "plane", frame.number, std::to_string(cursor.plane));
  }
  if (frame.first_row != cursor.first_row) {
    return bad(where, "first_row", frame.first_row, std::to_string(cursor.first_row));
  }
  const std::uint32_t rows = cursor.rows(planes);
  if (frame.rows != rows) return bad(where, "rows", frame.rows, std::to_string(rows));
  const RowShape& shape = planes[cursor.plane];
  const std::uint64_t row_bytes = std::uint64_t{rows} * shape.row_bytes;
  if (frame.payload_bytes > row_bytes) {
    return bad(where, "payload_bytes", frame.payload_bytes, "at most " + std::to_string(row_bytes));
  }
  const ChunkCoding coding{frame.compression, frame.filter, frame.lossy};
  const bool raw = coding == ChunkCoding{};
  if (raw && frame.payload_bytes != row_bytes) {
    return bad(where, "payload_bytes", frame.payload_bytes,
               std::to_string(row_bytes) + ", as its rows are raw");
  }
  if (!known_coding(coding, shape)) {
    return fail_field(Errc::incompatible, where, "compression, filter, lossy",
                      std::to_string(frame.compression) + ", " + std::to_string(frame.filter) +
                          ", " + std::to_string(frame.lossy),
                      "a coding that this version knows for this plane",
                      "written by a newer Esker, or damaged");
  }
  if (frame.lossy != 0 && frame.lossy != static_cast<std::uint8_t>(lossy)) {
    return bad(where, "lossy", frame.lossy,
               "0, or " + std::to_string(static_cast<unsigned>(lossy)) + " as in the head");
  }
  return {};
}

Result<void> check_span_frame(const FrameHeader& frame, const Geometry& geometry,
                              std::string_view where) {
  if (frame.content == 0 || frame.content > snapshot_span_nodes ||
      frame.content > no_node - frame.number) {
    return bad(where, "nodes", frame.content, "1…" + std::to_string(snapshot_span_nodes));
  }
  const std::uint64_t most_rows = frame.content * geometry.block_tokens;
  if (frame.rows > most_rows) {
    return bad(where, "rows", frame.rows, "at most " + std::to_string(most_rows));
  }
  if (frame.content > 1 && frame.rows * geometry.token_bytes() > snapshot_span_bytes) {
    return bad(where, "bytes of rows", frame.rows * geometry.token_bytes(),
               "at most " + std::to_string(snapshot_span_bytes));
  }
  const std::uint64_t label = std::max<std::uint64_t>(4 * geometry.block_tokens, max_key_bytes);
  const std::uint64_t most = frame.content * (sizeof(SnapshotNode) + align_up(label, 8));
  if (frame.payload_bytes > most) {
    return bad(where, "payload_bytes", frame.payload_bytes, "at most " + std::to_string(most));
  }
  return {};
}

FrameOrder::FrameOrder(const SnapshotHead& head, const std::vector<RowShape>& planes,
                       std::vector<std::byte>* index)
    : head_(&head), planes_(&planes), index_(index) {}

template <class T>
void FrameOrder::note(const T& entry) {
  const auto bytes = std::as_bytes(std::span(&entry, 1));
  index_hash_.update(bytes);
  index_size_ += bytes.size();
  if (index_ != nullptr) index_->insert(index_->end(), bytes.begin(), bytes.end());
}

void FrameOrder::skip_group() noexcept {
  cursor_.span_rows = 0;
  states_left_ = 0;
}

bool FrameOrder::allowed(FrameKind kind) const noexcept {
  if (stage_ == Stage::start) return kind == FrameKind::namespaces;
  if (stage_ == Stage::index) return kind == FrameKind::end;
  if (stage_ == Stage::ended) return false;
  if (chunks_left()) return kind == FrameKind::chunk;
  if (states_left_ > 0) return kind == FrameKind::state;
  return kind == FrameKind::session || kind == FrameKind::index ||
         (kind == FrameKind::span && stage_ == Stage::spans);
}

std::string_view FrameOrder::expected() const noexcept {
  if (stage_ == Stage::start) return "namespaces";
  if (stage_ == Stage::index) return "end";
  if (stage_ == Stage::ended) return "nothing";
  if (chunks_left()) return "a chunk";
  if (states_left_ > 0) return "a state";
  return stage_ == Stage::spans ? "a span, a session or the index" : "a session or the index";
}

Result<void> FrameOrder::accept(const FrameHeader& frame, std::uint64_t offset,
                                std::string_view where) {
  const auto kind = static_cast<FrameKind>(frame.kind);
  if (!allowed(kind)) {
    return fail_field(Errc::corrupt, where, "kind", kind_name(kind), expected(), damage_hint);
  }
  switch (kind) {
    case FrameKind::namespaces: {
      const std::uint64_t most = frame.rows * namespace_frame_bytes;
      if (frame.rows > snapshot_max_namespaces || frame.payload_bytes > most) {
        return bad(where, "payload_bytes", frame.payload_bytes,
                   "at most " + std::to_string(most) + " for " + std::to_string(frame.rows) +
                       " namespaces, of at most " + std::to_string(snapshot_max_namespaces));
      }
      stage_ = Stage::spans;
      return {};
    }
    case FrameKind::span:
      return accept_span(frame, offset, where);
    case FrameKind::chunk: {
      auto ok = check_chunk_frame(frame, cursor_, *planes_, head_->lossy, where);
      if (!ok) return ok;
      note(SnapshotChunkEntry{offset, frame});
      cursor_.step(*planes_);
      return {};
    }
    case FrameKind::session:
      return accept_session(frame, offset, where);
    case FrameKind::state:
      if (frame.number != next_state_) {
        return bad(where, "number", frame.number, std::to_string(next_state_));
      }
      ++next_state_;
      --states_left_;
      return {};
    case FrameKind::index:
      return accept_index(frame, offset, where);
    case FrameKind::end:
      if (frame.content != index_offset_) {
        return bad(where, "offset of the index", frame.content, std::to_string(index_offset_));
      }
      stage_ = Stage::ended;
      return {};
  }
  return {};
}

Result<void> FrameOrder::accept_span(const FrameHeader& frame, std::uint64_t offset,
                                     std::string_view where) {
  if (frame.number != next_node_) {
    return bad(where, "first node", frame.number, std::to_string(next_node_));
  }
  if (auto ok = check_span_frame(frame, head_->geometry, where); !ok) return ok;
  next_node_ += static_cast<std::uint32_t>(frame.content);
  ++groups_;
  cursor_ = ChunkCursor{0, 0, frame.rows};
  note(SnapshotGroup{offset, frame.sequence, frame.number,
                     static_cast<std::uint32_t>(frame.content),
                     static_cast<std::uint32_t>(chunks_of(frame.rows, *planes_)), 0});
  return {};
}

Result<void> FrameOrder::accept_session(const FrameHeader& frame, std::uint64_t offset,
                                        std::string_view where) {
  if (frame.number != sessions_) {
    return bad(where, "number", frame.number, std::to_string(sessions_));
  }
  constexpr std::uint64_t most = sizeof(SnapshotSessionHead) + 128 + 3 * 16'384 +
                                 std::uint64_t{4} * snapshot_max_session_tokens;
  if (frame.payload_bytes > most) {
    return bad(where, "payload_bytes", frame.payload_bytes, "at most " + std::to_string(most));
  }
  ++sessions_;
  ++groups_;
  next_state_ = 0;
  stage_ = Stage::sessions;
  note(SnapshotGroup{offset, frame.sequence, no_node, 0, 0, 0});
  return {};
}

Result<void> FrameOrder::accept_index(const FrameHeader& frame, std::uint64_t offset,
                                      std::string_view where) {
  if (frame.content != groups_) return bad(where, "groups", frame.content, std::to_string(groups_));
  if (frame.payload_bytes != index_size_) {
    return bad(where, "payload_bytes", frame.payload_bytes, std::to_string(index_size_));
  }
  if (const std::uint64_t sum = index_hash_.digest(); frame.payload_checksum != sum) {
    return fail_field(Errc::corrupt, where, "payload_checksum", hex(frame.payload_checksum),
                      hex(sum), "the index is not that of this file: get it anew");
  }
  index_offset_ = offset;
  stage_ = Stage::index;
  return {};
}

}  // namespace esker::detail
