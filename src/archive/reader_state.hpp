#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "archive/byte_source.hpp"
#include "archive/frame_order.hpp"
#include "archive/node_table.hpp"
#include "archive/reader.hpp"

namespace esker::detail {

/// What a reader holds. Frames are read one after the other, each header before its payload.
struct ArchiveReader::State {
  State(ByteSource from, SnapshotHead header);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// The header of the next frame, checked by itself and against those before it.
  [[nodiscard]] Result<FrameHeader> frame();
  /// The next header alone, as it stands.
  [[nodiscard]] Result<FrameHeader> raw_frame();
  /// Its payload and padding, not yet compared with its sum.
  [[nodiscard]] Result<void> payload(const FrameHeader& frame, std::vector<std::byte>& out);
  [[nodiscard]] Result<void> skip_payload(const FrameHeader& frame);
  [[nodiscard]] Result<void> padding(const FrameHeader& frame);
  /// Reads a payload and compares it.
  [[nodiscard]] Result<std::vector<std::byte>> whole(const FrameHeader& frame);
  [[nodiscard]] Result<void> index_payload(const FrameHeader& frame);

  [[nodiscard]] Result<ArchivePart> next_part();
  [[nodiscard]] Result<ArchiveSpan> read_span(const FrameHeader& frame);
  [[nodiscard]] Result<SessionWithStates> read_session(const FrameHeader& frame);

  /// Fails when an earlier read has left the place unknown.
  [[nodiscard]] Result<void> check_place() const;
  [[nodiscard]] std::string where(const FrameHeader& frame) const {
    return frame_text(frame.sequence, source.label());
  }

  ByteSource source;
  SnapshotHead head;
  std::vector<RowShape> planes;
  std::vector<ArchiveNamespace> namespaces;
  FrameOrder order;
  NodeTable nodes;
  std::set<std::string, std::less<>> session_names;
  std::uint64_t sequence = 0;  ///< of the next frame
  bool rows_open = false;      ///< a span was returned, and its rows were not taken
  std::optional<Error> broken;
  bool midway = false;  ///< within a frame: stays so when memory runs out there
};

/// `Errc::corrupt` unless these bytes have the frame's sum.
[[nodiscard]] Result<void> check_payload(const FrameHeader& frame,
                                         std::span<const std::byte> payload,
                                         std::string_view where);
/// Decodes a chunk whose payload has been compared, and compares the rows. `rows` is where they
/// are: in `out`, or, of raw ones, in the payload itself.
[[nodiscard]] Result<void> decode_rows(const FrameHeader& frame, const RowShape& shape,
                                       std::span<const std::byte> payload, std::span<std::byte> out,
                                       CodecMemory& memory, std::string_view where);
[[nodiscard]] constexpr bool is_raw(const FrameHeader& frame) noexcept {
  return frame.compression == 0 && frame.filter == 0 && frame.lossy == 0;
}

}  // namespace esker::detail
