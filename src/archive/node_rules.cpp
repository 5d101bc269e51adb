// Invariants
// 1. Writers and readers ask the same rules, so nothing is written that is refused later.
#include "archive/node_rules.hpp"

namespace esker::detail {

namespace {

Result<void> check_node(const ArchiveNode& node, const Geometry& geometry, const NodeFault& fault) {
  if (node.kind != BlockKind::tokens && node.kind != BlockKind::key) {
    return fault("kind", std::to_string(static_cast<unsigned>(node.kind)), "1 or 2");
  }
  if (node.tokens == 0 || node.tokens > geometry.block_tokens) {
    return fault("tokens", std::to_string(node.tokens),
                 "1…" + std::to_string(geometry.block_tokens));
  }
  const std::size_t bytes = node.label.size();
  if (node.kind == BlockKind::tokens && bytes != std::size_t{4} * node.tokens) {
    return fault("label_bytes", std::to_string(bytes), std::to_string(4 * node.tokens));
  }
  if (node.kind == BlockKind::key && (bytes == 0 || bytes > max_key_bytes)) {
    return fault("label_bytes", std::to_string(bytes), "1…" + std::to_string(max_key_bytes));
  }
  if (node.kind == BlockKind::key && node.tokens != geometry.block_tokens) {
    return fault("tokens", std::to_string(node.tokens),
                 std::to_string(geometry.block_tokens) + ", as every key");
  }
  if (node.kind == BlockKind::key && node.parent != no_node) {
    return fault("parent", std::to_string(node.parent), "none, for a key");
  }
  return {};
}

}  // namespace

Result<void> check_parent_number(const ArchiveNode& node, std::uint32_t number,
                                 std::uint32_t span_first, const NodeFault& fault) {
  if (node.parent >= number) {
    return fault("parent", std::to_string(node.parent), "below " + std::to_string(number));
  }
  if (node.parent >= span_first && node.parent != number - 1) {
    return fault("parent", std::to_string(node.parent),
                 std::to_string(number - 1) + ", or one of an earlier span");
  }
  return {};
}

Result<void> check_span(const ArchiveSpan& span, const SnapshotHead& head, Errc code,
                        std::string_view where) {
  const Geometry& geometry = head.geometry;
  const std::size_t count = span.nodes.size();
  if (count == 0 || count > snapshot_span_nodes || count > no_node - span.first_node) {
    return fail_field(code, where, "nodes", std::to_string(count),
                      "1…" + std::to_string(snapshot_span_nodes));
  }
  std::uint64_t rows = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const ArchiveNode& node = span.nodes[i];
    const NodeFault fault{code, where, span.first_node + i};
    if (auto ok = check_node(node, geometry, fault); !ok) return ok;
    if (node.parent != no_node) {
      auto ok = check_parent_number(node, span.first_node + i, span.first_node, fault);
      if (!ok) return ok;
    }
    if (!node.has_rows && head.use == SnapshotUse::portable) {
      return fault("flags", "0", "1: in portable files all nodes have rows");
    }
    rows += node.has_rows ? node.tokens : 0;
  }
  if (rows != span.rows) {
    return fail_field(code, where, "rows", std::to_string(span.rows), std::to_string(rows));
  }
  if (count > 1 && rows * geometry.token_bytes() > snapshot_span_bytes) {
    return fail_field(code, where, "bytes of rows", std::to_string(rows * geometry.token_bytes()),
                      "at most " + std::to_string(snapshot_span_bytes));
  }
  return {};
}

}  // namespace esker::detail
