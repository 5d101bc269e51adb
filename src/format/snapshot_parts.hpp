#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "format/snapshot_file.hpp"

namespace esker::detail {

// What payloads of a snapshot are made of; doc/snapshot_format.md.

/// Before the bytes of a namespace.
struct SnapshotNamespaceHead {
  std::uint8_t named;
  std::uint8_t length;
  std::array<std::uint8_t, 6> reserved;
};
static_assert(std::is_trivially_copyable_v<SnapshotNamespaceHead>);
static_assert(sizeof(SnapshotNamespaceHead) == 8);
static_assert(offsetof(SnapshotNamespaceHead, named) == 0);
static_assert(offsetof(SnapshotNamespaceHead, length) == 1);
static_assert(offsetof(SnapshotNamespaceHead, reserved) == 2);

/// Begins a session's payload; name, metadata and tokens follow.
struct SnapshotSessionHead {
  std::uint32_t tokens;
  std::uint32_t name_space;
  std::int32_t priority;
  std::uint8_t kept;
  std::uint8_t name_bytes;
  std::uint16_t states;
  std::uint64_t time_to_live_s;
  std::uint64_t created_unix_ns;
  std::uint64_t used_unix_ns;
  std::uint64_t keep_max_bytes;
  std::uint32_t metadata_bytes;
  std::uint32_t reserved;
};
static_assert(std::is_trivially_copyable_v<SnapshotSessionHead>);
static_assert(sizeof(SnapshotSessionHead) == 56);
static_assert(offsetof(SnapshotSessionHead, tokens) == 0);
static_assert(offsetof(SnapshotSessionHead, name_space) == 4);
static_assert(offsetof(SnapshotSessionHead, priority) == 8);
static_assert(offsetof(SnapshotSessionHead, kept) == 12);
static_assert(offsetof(SnapshotSessionHead, name_bytes) == 13);
static_assert(offsetof(SnapshotSessionHead, states) == 14);
static_assert(offsetof(SnapshotSessionHead, time_to_live_s) == 16);
static_assert(offsetof(SnapshotSessionHead, created_unix_ns) == 24);
static_assert(offsetof(SnapshotSessionHead, used_unix_ns) == 32);
static_assert(offsetof(SnapshotSessionHead, keep_max_bytes) == 40);
static_assert(offsetof(SnapshotSessionHead, metadata_bytes) == 48);
static_assert(offsetof(SnapshotSessionHead, reserved) == 52);

/// Begins a state's payload; the label, padded to 8 bytes, and the bytes follow.
struct SnapshotStateHead {
  std::uint32_t position;
  std::uint8_t label_bytes;
  std::array<std::uint8_t, 3> reserved;
};
static_assert(std::is_trivially_copyable_v<SnapshotStateHead>);
static_assert(sizeof(SnapshotStateHead) == 8);
static_assert(offsetof(SnapshotStateHead, position) == 0);
static_assert(offsetof(SnapshotStateHead, label_bytes) == 4);
static_assert(offsetof(SnapshotStateHead, reserved) == 5);

/// A span or a session in the index; a span's chunks follow.
struct SnapshotGroup {
  std::uint64_t offset;
  std::uint64_t sequence;
  std::uint32_t first_node;
  std::uint32_t nodes;
  std::uint32_t chunks;
  std::uint32_t reserved;
};
static_assert(std::is_trivially_copyable_v<SnapshotGroup>);
static_assert(sizeof(SnapshotGroup) == 32);
static_assert(offsetof(SnapshotGroup, offset) == 0);
static_assert(offsetof(SnapshotGroup, sequence) == 8);
static_assert(offsetof(SnapshotGroup, first_node) == 16);
static_assert(offsetof(SnapshotGroup, nodes) == 20);
static_assert(offsetof(SnapshotGroup, chunks) == 24);
static_assert(offsetof(SnapshotGroup, reserved) == 28);

/// A chunk in the index: where its frame is, and the frame's header as it stands there.
struct SnapshotChunkEntry {
  std::uint64_t offset;
  FrameHeader frame;
};
static_assert(std::is_trivially_copyable_v<SnapshotChunkEntry>);
static_assert(sizeof(SnapshotChunkEntry) == 72);
static_assert(offsetof(SnapshotChunkEntry, offset) == 0);
static_assert(offsetof(SnapshotChunkEntry, frame) == 8);

}  // namespace esker::detail
