// Invariants
// 1. Tables are taken only whole: the index leads to every node, and the node table has checked how
//    they hang together.
#include "snapshot/tables.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace esker::detail {

Result<SnapshotTables> SnapshotTables::load(const ArchiveReader& reader) {
  SnapshotTables tables;
  auto index = reader.index();
  if (!index) return failure_of(index);
  tables.index_ = std::move(*index);
  tables.nodes_ = NodeTable(reader.head().geometry.block_tokens,
                            static_cast<std::uint32_t>(reader.namespaces().size()));
  for (const SpanPlace& place : tables.index_.spans) {
    auto span = reader.span_at(place);
    if (!span) return failure_of(span);
    if (auto ok = tables.nodes_.add(*span, Errc::corrupt, reader.label()); !ok) {
      return failure_of(ok);
    }
    std::uint32_t row = 0;
    for (const ArchiveNode& node : span->nodes) {
      tables.first_rows_.push_back(row);
      if (node.has_rows) row += node.tokens;
    }
  }
  std::uint64_t end = 0;
  for (const std::uint64_t offset : tables.index_.sessions) {
    // One within another would let a small file hold many times its size.
    if (offset < end) {
      return fail_field(Errc::corrupt, reader.label(), "offset of a session in the index",
                        std::to_string(offset), "at least " + std::to_string(end));
    }
    auto found = reader.session_at(offset);
    if (!found) return failure_of(found);
    end = found->end;
    const std::size_t number = tables.sessions_.size();
    if (!tables.session_by_name_.try_emplace(found->session.name, number).second) {
      return fail_field(Errc::corrupt, reader.label(), "session", "\"" + found->session.name + "\"",
                        "another name than any before");
    }
    tables.sessions_.push_back({std::move(found->session), offset, found->states.size()});
  }
  return tables;
}

const SnapshotTables::Session* SnapshotTables::session(const std::string& name) const noexcept {
  const auto found = session_by_name_.find(name);
  return found == session_by_name_.end() ? nullptr : &sessions_[found->second];
}

SnapshotTables::RowPlace SnapshotTables::place_of(std::uint32_t node) const noexcept {
  const auto after = std::upper_bound(
      index_.spans.begin(), index_.spans.end(), node,
      [](std::uint32_t number, const SpanPlace& span) { return number < span.first_node; });
  return {static_cast<std::uint32_t>(after - index_.spans.begin()) - 1, first_rows_[node]};
}

const ChunkPlace* SnapshotTables::chunk(std::uint32_t span, std::size_t plane,
                                        std::uint32_t row) const noexcept {
  const std::vector<ChunkPlace>& chunks = index_.spans[span].chunks;
  const auto after = std::upper_bound(chunks.begin(), chunks.end(), std::pair(plane, row),
                                      [](const auto& wanted, const ChunkPlace& chunk) {
                                        return wanted < std::pair<std::size_t, std::uint32_t>(
                                                            chunk.plane, chunk.first_row);
                                      });
  if (after == chunks.begin()) return nullptr;
  const ChunkPlace& found = *std::prev(after);
  const bool holds = found.plane == plane && row - found.first_row < found.rows;
  return holds ? &found : nullptr;
}

namespace {

std::string namespace_text(const ArchiveNamespace& name_space) {
  if (name_space.named) return name_space.bytes;
  std::string text;
  for (const char c : name_space.bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

SnapshotPath describe_path(const NodeTable& nodes, std::uint32_t leaf, const Geometry& geometry) {
  const NodeTable::Node& end = nodes.at(leaf);
  SnapshotPath path;
  path.path = end.path_hash;
  path.name_space = end.name_space;
  path.tokens = end.end_token();
  path.key = end.kind == BlockKind::key;
  std::uint64_t own_tokens = end.tokens;
  bool alone = true;
  for (std::uint32_t at = end.parent; at != no_node; at = nodes.at(at).parent) {
    ++path.blocks;
    const std::uint32_t child = nodes.at(at).first_child;
    alone = alone && nodes.at(child).next_sibling == no_node;
    if (alone) own_tokens += nodes.at(at).tokens;
  }
  ++path.blocks;
  path.bytes = path.tokens * geometry.token_bytes();
  path.own_bytes = own_tokens * geometry.token_bytes();
  return path;
}

void count_chunks(const ArchiveIndex& index, SnapshotContents& contents) {
  for (const SpanPlace& span : index.spans) {
    for (const ChunkPlace& chunk : span.chunks) {
      contents.chunk_bytes += chunk.stored_bytes;
      if (chunk.coding.compression < contents.chunks.size()) {
        ++contents.chunks[chunk.coding.compression];
      }
    }
  }
}

}  // namespace

SnapshotContents describe_contents(const ArchiveReader& reader, const SnapshotTables& tables) {
  const Geometry& geometry = reader.head().geometry;
  const NodeTable& nodes = tables.nodes();
  SnapshotContents contents;
  for (const ArchiveNamespace& name_space : reader.namespaces()) {
    contents.namespaces.push_back({name_space.named, namespace_text(name_space), 0});
  }
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const NodeTable::Node& node = nodes.at(i);
    if (node.first_child == no_node) contents.paths.push_back(describe_path(nodes, i, geometry));
    if (!node.has_rows) continue;
    ++contents.blocks;
    contents.tokens += node.tokens;
    contents.namespaces[node.name_space].tokens += node.tokens;
  }
  contents.raw_bytes = contents.tokens * geometry.token_bytes();
  for (const SnapshotTables::Session& filed : tables.sessions()) {
    const ArchiveSession& session = filed.session;
    SnapshotSession described;
    described.name = session.name;
    described.name_space = session.name_space;
    described.tokens = static_cast<std::uint32_t>(session.tokens.size());
    described.stored_tokens = nodes.match(session.tokens, session.name_space).tokens;
    described.used_unix_ns = session.used_unix_ns;
    described.attachments = filed.states;
    contents.sessions.push_back(std::move(described));
  }
  count_chunks(tables.index(), contents);
  return contents;
}

int plane_number(const Geometry& geometry, std::uint32_t layer, Plane plane) noexcept {
  if (geometry.row_bytes(layer, plane) == 0) return -1;
  int number = 0;
  for (std::uint32_t at = 0; at <= layer; ++at) {
    for (const Plane each : {Plane::key, Plane::value}) {
      if (at == layer && each == plane) return number;
      if (geometry.row_bytes(at, each) > 0) ++number;
    }
  }
  return -1;
}

std::vector<std::uint32_t> plane_row_bytes(const Geometry& geometry) {
  std::vector<std::uint32_t> all;
  for (const LayerRows& layer : geometry.layers) {
    if (layer.key_row_bytes > 0) all.push_back(layer.key_row_bytes);
    if (layer.value_row_bytes > 0) all.push_back(layer.value_row_bytes);
  }
  return all;
}

}  // namespace esker::detail
