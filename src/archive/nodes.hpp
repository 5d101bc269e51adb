#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/session_info.hpp>
#include <string>
#include <vector>

#include "format/block_header.hpp"
#include "format/snapshot_file.hpp"

namespace esker::detail {

/// A node of a snapshot's trie, in memory. Nodes are numbered through the file; a parent's number
/// is lower than that of its children, so there are no cycles.
struct ArchiveNode {
  std::uint32_t parent = no_node;  ///< no_node: it hangs under the root of its namespace
  std::uint32_t name_space = 0;    ///< index into the file's namespaces; that of its parent
  std::uint32_t first_token = 0;
  std::uint32_t tokens = 0;
  std::uint64_t path_hash = 0;
  std::uint64_t published_unix_ns = 0;
  std::uint64_t used_unix_ns = 0;
  BlockKind kind = BlockKind::tokens;
  bool has_rows = true;
  std::vector<std::byte> label;  ///< token ids as they are stored, or an opaque key
};

/// A root of paths. Of a tenant only a digest is in a portable file: archive/namespaces.hpp.
struct ArchiveNamespace {
  bool named = true;
  std::string bytes;  ///< the namespace itself, or 16 bytes of digest
};

/// A session as a snapshot carries it; the tokens decide which nodes it uses.
struct ArchiveSession {
  std::string name;
  std::uint32_t name_space = 0;
  std::vector<std::int32_t> tokens;
  SessionMetadata metadata;
  std::int32_t priority = 0;
  std::uint64_t time_to_live_s = 0;
  std::uint64_t created_unix_ns = 0;
  std::uint64_t used_unix_ns = 0;
  bool kept = false;
  std::uint64_t keep_max_bytes = 0;
};

/// Engine state of the session before it in the file.
struct ArchiveState {
  std::string label;
  std::uint32_t position = 0;
  std::vector<std::byte> bytes;
};

/// A few thousand rows in all planes: the nodes and, one plane after the other, their chunks. No
/// node hangs under another chain's node of the same span, so whoever stores them can write all
/// rows before it publishes any.
struct ArchiveSpan {
  std::uint32_t first_node = 0;  ///< number of the first
  std::vector<ArchiveNode> nodes;
  std::uint32_t rows = 0;  ///< of nodes that have rows: in their order, one after the other
};

/// A chain within a span: nodes that hang under each other, from `begin` to `end` (excluded).
struct ArchiveChain {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};
[[nodiscard]] std::vector<ArchiveChain> chains_of(const ArchiveSpan& span);

}  // namespace esker::detail
