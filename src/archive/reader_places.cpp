// Invariants
// 1. An offset is believed only as far as the frame that stands there says the same.
// 2. Nothing here moves what `next` reads.
#include <array>
#include <cstring>
#include <set>

#include "archive/bytes_in.hpp"
#include "archive/damage.hpp"
#include "archive/payloads.hpp"
#include "archive/reader_state.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"

namespace esker::detail {

namespace {

/// Reads frames anywhere in a file.
class Places {
 public:
  Places(const ByteSource& source, const SnapshotHead& head) : source_(source), head_(head) {}

  /// The header at `offset`, which is of this kind; its sequence is whatever it says.
  [[nodiscard]] Result<FrameHeader> header(std::uint64_t offset, FrameKind kind) const {
    const std::string at = source_.label() + ": frame at offset " + std::to_string(offset);
    FrameHeader frame{};
    if (offset % 8 != 0 || offset > source_.file_bytes() ||
        source_.file_bytes() - offset < sizeof frame) {
      return bad(source_.label(), "offset of a frame", offset,
                 "a multiple of 8 within the file's " + std::to_string(source_.file_bytes()));
    }
    auto ok = source_.file().read_at(offset, std::as_writable_bytes(std::span(&frame, 1)));
    if (ok) ok = check_frame(frame, frame.sequence, head_, source_.label());
    if (!ok) return failure_of(ok);
    if (frame.kind != static_cast<std::uint8_t>(kind)) {
      return bad(at, "kind", frame.kind, std::to_string(static_cast<unsigned>(kind)));
    }
    const std::uint64_t left = source_.file_bytes() - offset - sizeof frame;
    if (frame.payload_bytes > left) {
      return bad(at, "payload_bytes", frame.payload_bytes, "at most " + std::to_string(left));
    }
    return frame;
  }

  [[nodiscard]] Result<std::vector<std::byte>> payload(std::uint64_t offset,
                                                       const FrameHeader& frame) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(frame.payload_bytes));
    auto ok = source_.file().read_at(offset + sizeof frame, bytes);
    if (ok) ok = check_payload(frame, bytes, where(frame));
    if (!ok) return failure_of(ok);
    return bytes;
  }

  [[nodiscard]] std::string where(const FrameHeader& frame) const {
    return frame_text(frame.sequence, source_.label());
  }

 private:
  const ByteSource& source_;
  const SnapshotHead& head_;
};

constexpr std::uint64_t frame_end(std::uint64_t offset, const FrameHeader& frame) noexcept {
  return offset + sizeof frame + align_up(frame.payload_bytes, 8);
}

/// Takes an index apart: groups in order of the file, without gaps in nodes and sessions.
class IndexReader {
 public:
  IndexReader(std::span<const std::byte> payload, std::uint64_t begin, std::uint64_t end)
      : in_(payload), begin_(begin), end_(end) {}

  Result<void> group(const SnapshotHead& head, const std::vector<RowShape>& planes,
                     std::string_view path, ArchiveIndex& out) {
    const std::string where = std::string(path) + ": index group " +
                              std::to_string(out.spans.size() + out.sessions.size());
    SnapshotGroup raw{};
    if (!in_.take(raw)) return bad(where, "size", in_.left(), "32 bytes");
    if (raw.offset < begin_ || raw.offset >= end_ || raw.offset % 8 != 0) {
      return bad(where, "offset", raw.offset,
                 std::to_string(begin_) + "…" + std::to_string(end_) + ", a multiple of 8");
    }
    if (raw.sequence < sequence_) {
      return bad(where, "sequence", raw.sequence, "at least " + std::to_string(sequence_));
    }
    if (raw.reserved != 0) return bad(where, "reserved", raw.reserved, "0");
    begin_ = raw.offset + sizeof(FrameHeader);
    sequence_ = raw.sequence + 1;
    if (raw.first_node == no_node) {
      if (raw.nodes != 0) return bad(where, "nodes", raw.nodes, "0, of a session");
      if (raw.chunks != 0) return bad(where, "chunks", raw.chunks, "0, of a session");
      out.sessions.push_back(raw.offset);
      return {};
    }
    if (!out.sessions.empty()) {
      return bad(where, "first_node", raw.first_node, "a session, as the one before it");
    }
    if (raw.first_node != nodes_ || raw.nodes == 0 || raw.nodes > snapshot_span_nodes) {
      return bad(where, "first_node and nodes", raw.first_node,
                 std::to_string(nodes_) + ", and 1…4096 nodes");
    }
    nodes_ += raw.nodes;
    SpanPlace span{raw.offset, raw.sequence, raw.first_node, raw.nodes, {}};
    auto ok = chunks(raw, head, planes, path, span);
    if (ok) out.spans.push_back(std::move(span));
    return ok;
  }

  [[nodiscard]] Result<void> at_end(std::string_view where) const { return in_.at_end(where); }

 private:
  /// How many rows the chunks that follow have together, from those of the first plane.
  [[nodiscard]] std::uint32_t rows_ahead(std::uint32_t chunks) const noexcept {
    BytesIn ahead = in_;
    std::uint64_t rows = 0;
    SnapshotChunkEntry entry{};
    for (std::uint32_t i = 0; i < chunks && ahead.take(entry) && entry.frame.number == 0; ++i) {
      rows += entry.frame.rows;
    }
    return rows > UINT32_MAX ? 0 : static_cast<std::uint32_t>(rows);
  }

  Result<void> chunks(const SnapshotGroup& raw, const SnapshotHead& head,
                      const std::vector<RowShape>& planes, std::string_view path, SpanPlace& span) {
    ChunkCursor cursor{0, 0, rows_ahead(raw.chunks)};
    if (const std::uint64_t expected = chunks_of(cursor.span_rows, planes);
        raw.chunks != expected) {
      return bad(path, "chunks of an index group", raw.chunks, std::to_string(expected));
    }
    for (std::uint32_t i = 0; i < raw.chunks; ++i) {
      SnapshotChunkEntry entry{};
      if (!in_.take(entry)) return bad(path, "size of the index", in_.left(), "more");
      const FrameHeader& frame = entry.frame;
      auto ok = check_frame(frame, sequence_, head, path);
      const std::string where = frame_text(sequence_, path);
      if (ok) ok = check_chunk_frame(frame, cursor, planes, head.lossy, where);
      if (!ok) return ok;
      const bool first = i == 0;
      if (entry.offset % 8 != 0 || entry.offset >= end_ ||
          (first ? entry.offset < begin_ : entry.offset != begin_) ||
          frame.payload_bytes > end_ - entry.offset) {
        return bad(where, "offset in the index", entry.offset, std::to_string(begin_));
      }
      begin_ = frame_end(entry.offset, frame);
      ++sequence_;
      cursor.step(planes);
      span.chunks.push_back({entry.offset,
                             frame.number,
                             frame.first_row,
                             frame.rows,
                             frame.payload_bytes,
                             {frame.compression, frame.filter, frame.lossy},
                             frame.sequence,
                             frame.checksum});
    }
    return {};
  }

  BytesIn in_;
  std::uint64_t begin_;  ///< where the next frame can be
  std::uint64_t end_;    ///< where the index is
  std::uint64_t sequence_ = 1;
  std::uint64_t nodes_ = 0;
};

Result<void> only_files(const ByteSource& source) {
  if (source.seekable()) return {};
  return fail(Errc::invalid, source.label() + ": a stream cannot be searched; save it to a file");
}

}  // namespace

Result<ArchiveIndex> ArchiveReader::index() const {
  return guarded([&]() -> Result<ArchiveIndex> {
    const ByteSource& source = state_->source;
    if (auto ok = only_files(source); !ok) return failure_of(ok);
    const Places places(source, state_->head);
    const std::uint64_t size = source.file_bytes();
    if (size < 2 * sizeof(FrameHeader) || size % 8 != 0) {
      return bad(source.label(), "size", size, "a multiple of 8: it is cut off");
    }
    const std::uint64_t last = size - sizeof(FrameHeader);
    auto end = places.header(last, FrameKind::end);
    if (!end) return failure_of(end);
    auto frame = places.header(end->content, FrameKind::index);
    if (!frame) return failure_of(frame);
    const std::string where = places.where(*frame);
    if (frame->sequence + 1 != end->sequence) {
      return bad(where, "sequence", frame->sequence, std::to_string(end->sequence - 1));
    }
    if (frame_end(end->content, *frame) != last) {
      return bad(where, "end", frame_end(end->content, *frame), std::to_string(last));
    }
    if (frame->content > frame->payload_bytes / sizeof(SnapshotGroup)) {
      return bad(where, "groups", frame->content, "as many as the payload can hold");
    }
    auto payload = places.payload(end->content, *frame);
    if (!payload) return failure_of(payload);
    ArchiveIndex index;
    IndexReader groups(*payload, sizeof(SnapshotHeader) + sizeof(FrameHeader), end->content);
    for (std::uint64_t i = 0; i < frame->content; ++i) {
      auto ok = groups.group(state_->head, state_->planes, source.label(), index);
      if (!ok) return failure_of(ok);
    }
    if (auto ok = groups.at_end(where); !ok) return failure_of(ok);
    return index;
  });
}

Result<ArchiveSpan> ArchiveReader::span_at(const SpanPlace& place) const {
  return guarded([&]() -> Result<ArchiveSpan> {
    if (auto ok = only_files(state_->source); !ok) return failure_of(ok);
    const Places places(state_->source, state_->head);
    auto frame = places.header(place.offset, FrameKind::span);
    if (!frame) return failure_of(frame);
    const std::string where = places.where(*frame);
    if (frame->sequence != place.sequence || frame->number != place.first_node ||
        frame->content != place.nodes) {
      return bad(where, "sequence, first node and nodes", frame->sequence,
                 std::to_string(place.sequence) + " and others, as in the index");
    }
    if (auto ok = check_span_frame(*frame, state_->head.geometry, where); !ok) {
      return failure_of(ok);
    }
    if (const std::uint64_t chunks = chunks_of(frame->rows, state_->planes);
        chunks != place.chunks.size()) {
      return bad(where, "chunks in the index", place.chunks.size(), std::to_string(chunks));
    }
    std::uint32_t rows = 0;
    for (const ChunkPlace& chunk : place.chunks) rows += chunk.plane == 0 ? chunk.rows : 0;
    if (rows != frame->rows) return bad(where, "rows", frame->rows, std::to_string(rows));
    auto payload = places.payload(place.offset, *frame);
    if (!payload) return failure_of(payload);
    return decode_span(*frame, *payload, state_->head, where);
  });
}

Result<void> ArchiveReader::chunk_at(const SpanPlace& span, const ChunkPlace& place,
                                     std::span<std::byte> out, CodecMemory& memory) const {
  return guarded([&]() -> Result<void> {
    if (auto ok = only_files(state_->source); !ok) return ok;
    const Places places(state_->source, state_->head);
    auto frame = places.header(place.offset, FrameKind::chunk);
    if (!frame) return failure_of(frame);
    const std::string where = places.where(*frame);
    if (frame->checksum != place.checksum || frame->sequence != place.sequence ||
        frame->sequence <= span.sequence) {
      return bad(where, "header checksum", frame->checksum,
                 std::to_string(place.checksum) + ", as in the index");
    }
    const ChunkCoding coding{frame->compression, frame->filter, frame->lossy};
    const bool same = frame->number == place.plane && frame->first_row == place.first_row &&
                      frame->rows == place.rows && coding == place.coding &&
                      frame->payload_bytes == place.stored_bytes;
    if (!same || place.plane >= state_->planes.size()) {
      return bad(where, "plane, rows or coding", frame->number, "what the index says");
    }
    const RowShape& shape = state_->planes[place.plane];
    if (out.size() != std::size_t{place.rows} * shape.row_bytes) {
      return fail(Errc::invalid, where + ": room for " + std::to_string(out.size()) +
                                     " bytes was given, its rows have " +
                                     std::to_string(std::size_t{place.rows} * shape.row_bytes));
    }
    if (is_raw(*frame) && frame->payload_bytes == out.size()) {
      auto ok = state_->source.file().read_at(place.offset + sizeof(FrameHeader), out);
      if (ok) ok = check_payload(*frame, out, where);
      if (!ok) return ok;
      return decode_rows(*frame, shape, out, out, memory, where);
    }
    auto payload = places.payload(place.offset, *frame);
    if (!payload) return failure_of(payload);
    return decode_rows(*frame, shape, *payload, out, memory, where);
  });
}

Result<SessionWithStates> ArchiveReader::session_at(std::uint64_t offset) const {
  return guarded([&]() -> Result<SessionWithStates> {
    if (auto ok = only_files(state_->source); !ok) return failure_of(ok);
    const Places places(state_->source, state_->head);
    auto frame = places.header(offset, FrameKind::session);
    if (!frame) return failure_of(frame);
    auto payload = places.payload(offset, *frame);
    if (!payload) return failure_of(payload);
    auto decoded = decode_session(*payload, state_->namespaces.size(), places.where(*frame));
    if (!decoded) return failure_of(decoded);
    SessionWithStates out{std::move(decoded->session), {}, 0};
    std::set<std::string, std::less<>> labels;
    for (std::uint32_t i = 0; i < decoded->states; ++i) {
      const std::uint64_t before = frame->sequence;
      offset = frame_end(offset, *frame);
      frame = places.header(offset, FrameKind::state);
      if (!frame) return failure_of(frame);
      const std::string where = places.where(*frame);
      if (frame->sequence != before + 1 || frame->number != i) {
        return bad(where, "number", frame->number, std::to_string(i));
      }
      payload = places.payload(offset, *frame);
      if (!payload) return failure_of(payload);
      auto state = decode_state(std::move(*payload), out.session, where);
      if (!state) return failure_of(state);
      if (!labels.insert(state->label).second) return bad(where, "label", i, "another");
      out.states.push_back(std::move(*state));
    }
    out.end = frame_end(offset, *frame);
    return out;
  });
}

}  // namespace esker::detail
