#pragma once

#include <cstdint>
#include <esker/result.hpp>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "codec/codec.hpp"
#include "format/snapshot_file.hpp"
#include "format/snapshot_parts.hpp"

namespace esker::detail {

/// Chunks of a span with so many rows.
[[nodiscard]] std::uint64_t chunks_of(std::uint32_t rows,
                                      const std::vector<RowShape>& planes) noexcept;

/// The next chunk of a span: planes one after the other, in each the rows.
struct ChunkCursor {
  std::uint32_t plane = 0;
  std::uint32_t first_row = 0;
  std::uint32_t span_rows = 0;

  [[nodiscard]] bool done(std::size_t planes) const noexcept {
    return plane >= planes || first_row >= span_rows;
  }
  /// Rows of the chunk that comes now.
  [[nodiscard]] std::uint32_t rows(const std::vector<RowShape>& planes) const noexcept;
  void step(const std::vector<RowShape>& planes) noexcept;
};

/// A chunk's frame alone: plane, rows, lengths and coding as they must be at `cursor`.
[[nodiscard]] Result<void> check_chunk_frame(const FrameHeader& frame, const ChunkCursor& cursor,
                                             const std::vector<RowShape>& planes, Lossy lossy,
                                             std::string_view where);
/// A span's frame alone.
[[nodiscard]] Result<void> check_span_frame(const FrameHeader& frame, const Geometry& geometry,
                                            std::string_view where);

/// Which frames may follow each other, and what the index must say of them. Fed with all frames of
/// a file in order, by whoever reads or writes it.
class FrameOrder {
 public:
  /// Both outlive it. The bytes of the index are added to `index` as frames are accepted.
  FrameOrder(const SnapshotHead& head, const std::vector<RowShape>& planes,
             std::vector<std::byte>* index = nullptr);

  /// `offset` is where the frame's header begins.
  [[nodiscard]] Result<void> accept(const FrameHeader& frame, std::uint64_t offset,
                                    std::string_view where);
  /// After a session was read: how many state frames follow.
  void expect_states(std::uint16_t states) noexcept { states_left_ = states; }
  /// Gives up on the chunks, or states, that are left of the group.
  void skip_group() noexcept;

  [[nodiscard]] bool chunks_left() const noexcept { return !cursor_.done(planes_->size()); }
  [[nodiscard]] const ChunkCursor& cursor() const noexcept { return cursor_; }
  [[nodiscard]] bool ended() const noexcept { return stage_ == Stage::ended; }
  [[nodiscard]] std::uint32_t next_node() const noexcept { return next_node_; }
  [[nodiscard]] std::uint32_t sessions() const noexcept { return sessions_; }
  [[nodiscard]] std::uint64_t groups() const noexcept { return groups_; }

 private:
  enum class Stage : std::uint8_t { start, spans, sessions, index, ended };

  [[nodiscard]] Result<void> accept_span(const FrameHeader& frame, std::uint64_t offset,
                                         std::string_view where);
  [[nodiscard]] Result<void> accept_session(const FrameHeader& frame, std::uint64_t offset,
                                            std::string_view where);
  [[nodiscard]] Result<void> accept_index(const FrameHeader& frame, std::uint64_t offset,
                                          std::string_view where);
  [[nodiscard]] bool allowed(FrameKind kind) const noexcept;
  [[nodiscard]] std::string_view expected() const noexcept;
  template <class T>
  void note(const T& entry);

  const SnapshotHead* head_;
  const std::vector<RowShape>* planes_;
  std::vector<std::byte>* index_;
  Stage stage_ = Stage::start;
  ChunkCursor cursor_;
  std::uint16_t states_left_ = 0;
  std::uint32_t next_state_ = 0;
  std::uint32_t next_node_ = 0;
  std::uint32_t sessions_ = 0;
  std::uint64_t groups_ = 0;
  std::uint64_t index_size_ = 0;
  std::uint64_t index_offset_ = 0;
  StreamingHash index_hash_;
};

}  // namespace esker::detail
