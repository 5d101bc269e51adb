// Invariants
// 1. Every length in a payload is compared with what is left of it before it is used.
// 2. All of a payload has a meaning: bytes that are left over, or padding that is not zero, are
//    damage.
#include "archive/payloads.hpp"

#include <cstring>
#include <set>
#include <string>

#include "archive/bytes_in.hpp"
#include "archive/namespaces.hpp"
#include "archive/node_rules.hpp"
#include "base/error.hpp"
#include "format/snapshot_parts.hpp"

namespace esker::detail {

namespace {

constexpr std::size_t digest_bytes = 16;

/// The rules of one namespace; `code` is `invalid` for a caller's, `corrupt` for a file's.
Result<void> check_namespace(const ArchiveNamespace& name_space, SnapshotUse use, Errc code,
                             std::string_view where) {
  const std::size_t bytes = name_space.bytes.size();
  if (bytes > max_namespace_bytes) {
    return fail_field(code, where, "length of a namespace", std::to_string(bytes),
                      "at most " + std::to_string(max_namespace_bytes));
  }
  if (name_space.named) {
    if (use == SnapshotUse::cold || is_public_namespace(name_space.bytes)) return {};
    return fail_field(code, where, "a namespace", "a name in clear", "a digest of it",
                      "names of tenants must not stand in a portable file");
  }
  if (use == SnapshotUse::cold) {
    return fail_field(code, where, "a namespace", "a digest", "a name, in a cold file");
  }
  if (bytes == digest_bytes) return {};
  return fail_field(code, where, "length of a digest", std::to_string(bytes),
                    std::to_string(digest_bytes));
}

class Namespaces {
 public:
  /// Two roots for the same paths would hide one from lookups.
  Result<void> add(const ArchiveNamespace& name_space, Errc code, std::string_view where) {
    if (seen_.emplace(name_space.named, name_space.bytes).second) return {};
    return fail_field(code, where, "a namespace", "there twice", "once");
  }

 private:
  std::set<std::pair<bool, std::string>> seen_;
};

Result<ArchiveNode> decode_node(BytesIn& in, std::uint32_t number, std::string_view where) {
  const NodeFault fault{Errc::corrupt, where, number};
  SnapshotNode raw{};
  if (!in.take(raw)) return fault("fixed part", "cut off", "48 bytes");
  ArchiveNode node;
  node.parent = raw.parent;
  node.name_space = raw.name_space;
  node.first_token = raw.first_token;
  node.tokens = raw.tokens;
  node.path_hash = raw.path_hash;
  node.published_unix_ns = raw.published_unix_ns;
  node.used_unix_ns = raw.used_unix_ns;
  node.kind = static_cast<BlockKind>(raw.kind);
  node.has_rows = (raw.flags & node_has_rows) != 0;
  if ((raw.flags & ~node_has_rows) != 0) return fault("flags", std::to_string(raw.flags), "0 or 1");
  if (raw.reserved != 0) return fault("reserved", std::to_string(raw.reserved), "0");
  if (raw.label_bytes > max_label_bytes) {
    return fault("label_bytes", std::to_string(raw.label_bytes),
                 "at most " + std::to_string(max_label_bytes));
  }
  const auto label = in.bytes(raw.label_bytes);
  if (!label) return fault("label", "cut off", std::to_string(raw.label_bytes) + " bytes");
  if (!in.padding(8)) return fault("padding of the label", "not zero, or cut off", "zeros");
  node.label.assign(label->begin(), label->end());
  return node;
}

}  // namespace

Result<std::vector<std::byte>> encode_namespaces(std::span<const ArchiveNamespace> namespaces,
                                                 SnapshotUse use, std::string_view where) {
  if (namespaces.size() > snapshot_max_namespaces) {
    return fail_field(Errc::invalid, where, "namespaces", std::to_string(namespaces.size()),
                      "at most " + std::to_string(snapshot_max_namespaces));
  }
  BytesOut out;
  Namespaces seen;
  for (const ArchiveNamespace& name_space : namespaces) {
    auto ok = check_namespace(name_space, use, Errc::invalid, where);
    if (!ok) return failure_of(ok);
    ok = seen.add(name_space, Errc::invalid, where);
    if (!ok) return failure_of(ok);
    SnapshotNamespaceHead head{};
    head.named = name_space.named ? 1 : 0;
    head.length = static_cast<std::uint8_t>(name_space.bytes.size());
    out.put(head);
    out.text(name_space.bytes);
    out.pad(8);
  }
  return std::move(out).bytes();
}

Result<std::vector<ArchiveNamespace>> decode_namespaces(std::span<const std::byte> payload,
                                                        std::uint32_t count, SnapshotUse use,
                                                        std::string_view where) {
  if (count > snapshot_max_namespaces) {
    return fail_field(Errc::corrupt, where, "namespaces", std::to_string(count),
                      "at most " + std::to_string(snapshot_max_namespaces));
  }
  std::vector<ArchiveNamespace> namespaces;
  BytesIn in(payload);
  Namespaces seen;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto bad = [&](std::string_view what, std::string_view expected) {
      const std::string place = std::string(where) + ": namespace " + std::to_string(i);
      return fail_field(Errc::corrupt, place, what, "something else, or cut off", expected);
    };
    SnapshotNamespaceHead head{};
    if (!in.take(head)) return bad("fixed part", "8 bytes");
    if (head.named > 1) return bad("named", "0 or 1");
    if (!all_zero(std::as_bytes(std::span(head.reserved)))) return bad("reserved", "zero");
    const auto bytes = in.bytes(head.length);
    if (!bytes) return bad("name", std::to_string(head.length) + " bytes");
    if (!in.padding(8)) return bad("padding", "zeros");
    ArchiveNamespace name_space{head.named == 1, text_of(*bytes)};
    auto ok = check_namespace(name_space, use, Errc::corrupt, where);
    if (!ok) return failure_of(ok);
    ok = seen.add(name_space, Errc::corrupt, where);
    if (!ok) return failure_of(ok);
    namespaces.push_back(std::move(name_space));
  }
  if (auto ok = in.at_end(where); !ok) return failure_of(ok);
  return namespaces;
}

std::vector<std::byte> encode_span(const ArchiveSpan& span) {
  BytesOut out;
  for (const ArchiveNode& node : span.nodes) {
    SnapshotNode raw{};
    raw.parent = node.parent;
    raw.name_space = node.name_space;
    raw.first_token = node.first_token;
    raw.tokens = node.tokens;
    raw.path_hash = node.path_hash;
    raw.published_unix_ns = node.published_unix_ns;
    raw.used_unix_ns = node.used_unix_ns;
    raw.label_bytes = static_cast<std::uint16_t>(node.label.size());
    raw.kind = static_cast<std::uint8_t>(node.kind);
    raw.flags = node.has_rows ? node_has_rows : std::uint8_t{0};
    out.put(raw);
    out.append(node.label);
    out.pad(8);
  }
  return std::move(out).bytes();
}

Result<ArchiveSpan> decode_span(const FrameHeader& frame, std::span<const std::byte> payload,
                                const SnapshotHead& head, std::string_view where) {
  ArchiveSpan span;
  span.first_node = frame.number;
  span.rows = frame.rows;
  if (frame.content > snapshot_span_nodes) {
    return fail_field(Errc::corrupt, where, "nodes", std::to_string(frame.content),
                      "1…" + std::to_string(snapshot_span_nodes));
  }
  BytesIn in(payload);
  for (std::uint32_t i = 0; i < frame.content; ++i) {
    auto node = decode_node(in, span.first_node + i, where);
    if (!node) return failure_of(node);
    span.nodes.push_back(std::move(*node));
  }
  if (auto ok = in.at_end(where); !ok) return failure_of(ok);
  auto ok = check_span(span, head, Errc::corrupt, where);
  if (!ok) return failure_of(ok);
  return span;
}

}  // namespace esker::detail
