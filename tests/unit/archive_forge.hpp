#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "archive/planes.hpp"
#include "base/bytes.hpp"
#include "base/hash.hpp"
#include "codec/codec.hpp"
#include "format/snapshot_file.hpp"
#include "format/snapshot_parts.hpp"

namespace esker::test {

using namespace esker::detail;

/// A snapshot taken apart, to be changed and sealed again with right checksums: only what is said
/// inside is wrong then.
class Forge {
 public:
  struct Frame {
    FrameHeader header{};
    std::vector<std::byte> payload;
    bool lies = false;  ///< `payload_bytes` stays as it is set

    [[nodiscard]] FrameKind kind() const noexcept { return static_cast<FrameKind>(header.kind); }
    template <class T>
    [[nodiscard]] T get(std::size_t offset) const {
      T value;
      std::memcpy(&value, payload.data() + offset, sizeof value);
      return value;
    }
    template <class T>
    void set(std::size_t offset, const T& value) {
      std::memcpy(payload.data() + offset, &value, sizeof value);
    }
  };

  /// Nothing when there is no head. Takes frames as far as they can be told apart.
  static std::optional<Forge> take_apart(std::span<const std::byte> bytes) {
    Forge forge;
    if (bytes.size() < sizeof(SnapshotHeader)) return std::nullopt;
    const auto head_bytes = snapshot_head_bytes(bytes.first(sizeof(SnapshotHeader)), "forge");
    if (!head_bytes || *head_bytes > bytes.size()) return std::nullopt;
    forge.head.assign(bytes.begin(), bytes.begin() + *head_bytes);
    for (std::size_t at = *head_bytes; at + sizeof(FrameHeader) <= bytes.size();) {
      Frame frame;
      std::memcpy(&frame.header, bytes.data() + at, sizeof frame.header);
      at += sizeof frame.header;
      const std::uint64_t wanted = frame.header.payload_bytes;
      const std::size_t left = bytes.size() - at;
      const std::size_t taken = wanted < left ? static_cast<std::size_t>(wanted) : left;
      frame.lies = wanted > left;
      frame.payload.assign(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                           bytes.begin() + static_cast<std::ptrdiff_t>(at + taken));
      at += static_cast<std::size_t>(align_up(taken, 8));
      forge.frames.push_back(std::move(frame));
    }
    return forge;
  }

  /// Everything sealed: sums, sequences, and the index and the end that belong to the frames.
  [[nodiscard]] std::vector<std::byte> seal() {
    seal_head();
    const auto decoded = decode_snapshot_head(head, "forge");
    SnapshotHead fallback;
    std::memcpy(fallback.id.data(), head.data() + offsetof(SnapshotHeader, id), 16);
    const SnapshotHead& sealing = decoded ? *decoded : fallback;
    const auto planes = decoded ? plane_shapes(decoded->geometry) : std::vector<RowShape>{};
    std::vector<std::byte> out = head;
    std::vector<std::byte> index;
    std::uint64_t groups = 0;
    std::uint64_t index_offset = 0;
    std::uint64_t sequence = 0;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      Frame& frame = frames[i];
      if (fix_index && frame.kind() == FrameKind::index) {
        frame.payload = index;
        frame.header.content = groups;
        index_offset = out.size();
      }
      if (fix_index && frame.kind() == FrameKind::end) frame.header.content = index_offset;
      if (!frame.lies) frame.header.payload_bytes = frame.payload.size();
      if (fix_sequence) frame.header.sequence = sequence;
      ++sequence;
      fix_content(frame, planes);
      seal_frame(frame.header, frame.payload, sealing);
      add_to_index(i, out.size(), index, groups);
      const auto header = std::as_bytes(std::span(&frame.header, 1));
      out.insert(out.end(), header.begin(), header.end());
      out.insert(out.end(), frame.payload.begin(), frame.payload.end());
      out.resize(static_cast<std::size_t>(align_up(out.size(), 8)));
    }
    return out;
  }

  [[nodiscard]] Frame& first(FrameKind kind, std::size_t skip = 0) {
    for (Frame& frame : frames) {
      if (frame.kind() == kind && skip-- == 0) return frame;
    }
    return frames.back();
  }

  std::vector<std::byte> head;
  std::vector<Frame> frames;
  bool fix_index = true;
  bool fix_sequence = true;
  bool fix_rows = true;  ///< sums of decoded rows too

 private:
  void seal_head() {
    const std::uint64_t sum = xxh3(std::span(head).first(head.size() - 8));
    std::memcpy(head.data() + head.size() - 8, &sum, 8);
  }

  void fix_content(Frame& frame, const std::vector<RowShape>& planes) const {
    if (!fix_rows || frame.kind() != FrameKind::chunk || frame.header.number >= planes.size()) {
      return;
    }
    const ChunkCoding coding{frame.header.compression, frame.header.filter, frame.header.lossy};
    const RowShape& shape = planes[frame.header.number];
    if (coding == ChunkCoding{}) {
      frame.header.content = xxh3(frame.payload);
      return;
    }
    const std::uint64_t bytes = std::uint64_t{frame.header.rows} * shape.row_bytes;
    if (bytes == 0 || bytes > (std::uint64_t{1} << 22) || !known_coding(coding, shape)) return;
    std::vector<std::byte> rows(static_cast<std::size_t>(bytes));
    CodecMemory memory;
    if (decode_chunk(coding, shape, frame.payload, rows, memory, "forge")) {
      frame.header.content = xxh3(rows);
    }
  }

  void add_to_index(std::size_t at, std::uint64_t offset, std::vector<std::byte>& index,
                    std::uint64_t& groups) const {
    const auto put = [&index](const auto& entry) {
      const auto bytes = std::as_bytes(std::span(&entry, 1));
      index.insert(index.end(), bytes.begin(), bytes.end());
    };
    const Frame& frame = frames[at];
    if (frame.kind() == FrameKind::chunk) put(SnapshotChunkEntry{offset, frame.header});
    if (frame.kind() == FrameKind::session) {
      put(SnapshotGroup{offset, frame.header.sequence, no_node, 0, 0, 0});
      ++groups;
    }
    if (frame.kind() != FrameKind::span) return;
    std::uint32_t chunks = 0;
    while (at + 1 + chunks < frames.size() && frames[at + 1 + chunks].kind() == FrameKind::chunk) {
      ++chunks;
    }
    put(SnapshotGroup{offset, frame.header.sequence, frame.header.number,
                      static_cast<std::uint32_t>(frame.header.content), chunks, 0});
    ++groups;
  }
};

}  // namespace esker::test
