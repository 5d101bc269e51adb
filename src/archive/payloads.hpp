#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "archive/nodes.hpp"
#include "format/snapshot_file.hpp"

namespace esker::detail {

// Payloads of a snapshot's frames to bytes and back. What is decoded keeps every rule that can be
// told without other frames. `where` names file and frame in messages.

[[nodiscard]] Result<std::vector<std::byte>> encode_namespaces(
    std::span<const ArchiveNamespace> namespaces, SnapshotUse use, std::string_view where);
[[nodiscard]] Result<std::vector<ArchiveNamespace>> decode_namespaces(
    std::span<const std::byte> payload, std::uint32_t count, SnapshotUse use,
    std::string_view where);

[[nodiscard]] std::vector<std::byte> encode_span(const ArchiveSpan& span);
[[nodiscard]] Result<ArchiveSpan> decode_span(const FrameHeader& frame,
                                              std::span<const std::byte> payload,
                                              const SnapshotHead& head, std::string_view where);

struct DecodedSession {
  ArchiveSession session;
  std::uint16_t states = 0;
};
[[nodiscard]] Result<std::vector<std::byte>> encode_session(const ArchiveSession& session,
                                                            std::size_t states,
                                                            std::size_t namespaces,
                                                            std::string_view where);
[[nodiscard]] Result<DecodedSession> decode_session(std::span<const std::byte> payload,
                                                    std::size_t namespaces, std::string_view where);

/// The beginning of a state's payload, before its bytes.
[[nodiscard]] Result<std::vector<std::byte>> encode_state(const ArchiveState& state,
                                                          const ArchiveSession& session,
                                                          std::string_view where);
/// Takes the payload over.
[[nodiscard]] Result<ArchiveState> decode_state(std::vector<std::byte> payload,
                                                const ArchiveSession& session,
                                                std::string_view where);

}  // namespace esker::detail
