#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "archive/bytes_in.hpp"
#include "archive/namespaces.hpp"
#include "archive/planes.hpp"
#include "archive/reader.hpp"
#include "archive/writer.hpp"
#include "base/hash.hpp"
#include "catch.hpp"
#include "support/stores.hpp"

namespace esker::test {

using namespace esker::detail;

/// A snapshot in memory.
class MemorySink final : public ByteSink {
 public:
  Result<void> write(std::span<const std::byte> more) override {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return {};
  }
  [[nodiscard]] const std::string& label() const noexcept override { return label_; }
  std::vector<std::byte> bytes;

 private:
  std::string label_ = "memory.esnap";
};

/// What a snapshot is to hold.
struct Sample {
  SnapshotHead head;
  std::vector<ArchiveNamespace> namespaces;
  std::vector<ArchiveSpan> spans;
  std::vector<SessionWithStates> sessions;
};

/// A row is a function of its node, plane and place; half of its bytes repeat, as in real ones.
inline void fill_row(std::uint32_t node, std::size_t plane, std::uint32_t row,
                     std::span<std::byte> out) {
  const std::array<std::uint64_t, 3> key{node, plane, row};
  std::uint64_t random = xxh3(std::as_bytes(std::span(key)));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i % 8 == 0) random = random * 0x9E37'79B9'7F4A'7C15U + 1;
    const std::uint64_t byte = i % 2 == 0 ? random >> (8 * (i % 8)) : 0x38 + (random >> 62);
    out[i] = static_cast<std::byte>(byte & 0xFF);
  }
}

/// Rows [first, first + count) of a span's plane.
inline void fill_rows(const ArchiveSpan& span, std::size_t plane, std::uint32_t first,
                      std::size_t row_bytes, std::span<std::byte> out) {
  std::uint32_t row = 0;
  for (std::uint32_t i = 0; i < span.nodes.size(); ++i) {
    if (!span.nodes[i].has_rows) continue;
    for (std::uint32_t in_node = 0; in_node < span.nodes[i].tokens; ++in_node, ++row) {
      if (row < first || (row - first) * row_bytes >= out.size()) continue;
      fill_row(span.first_node + i, plane, in_node,
               out.subspan((row - first) * row_bytes, row_bytes));
    }
  }
}

/// Adds nodes in chains, and begins a span where one has to.
class SampleBuilder {
 public:
  explicit SampleBuilder(const Geometry& geometry, std::uint32_t namespaces = 1) {
    sample_.head.geometry = geometry;
    need(sample_.head.model.set("model", "test"));
    sample_.head.id.fill(7);
    sample_.head.salt.fill(9);
    sample_.head.created_unix_ns = 1'700'000'000'000'000'000;
    for (std::uint32_t i = 0; i < namespaces; ++i) {
      const std::string digest(16, static_cast<char>('a' + i % 26));
      const std::string number = std::to_string(i);
      ArchiveNamespace one{i % 2 == 0, i == 0 ? "" : "lora=" + number};
      if (!one.named) one.bytes = number + digest.substr(number.size());
      sample_.namespaces.push_back(one);
    }
  }

  /// `blocks` full blocks and then `rest` tokens, below a node or a root. Returns the last full
  /// one. The first token tells siblings apart.
  std::uint32_t chain(std::uint32_t parent, std::uint32_t name_space, std::uint32_t blocks,
                      std::uint32_t rest, std::int32_t first) {
    const std::uint32_t size = sample_.head.geometry.block_tokens;
    std::uint32_t last_full = parent;
    for (std::uint32_t i = 0; i < blocks + (rest > 0 ? 1 : 0); ++i) {
      const std::uint32_t tokens = i < blocks ? size : rest;
      ArchiveNode node;
      node.parent = last_full;
      node.name_space = name_space;
      node.first_token = last_full == no_node ? 0 : first_[last_full] + size;
      node.tokens = tokens;
      node.path_hash = next_ * 31U + 5;
      node.published_unix_ns = 1000 + next_;
      node.used_unix_ns = 2000 + next_;
      std::vector<std::int32_t> ids(tokens);
      for (std::uint32_t at = 0; at < tokens; ++at) {
        ids[at] = first + static_cast<std::int32_t>(node.first_token + at) * 3;
      }
      const auto label = std::as_bytes(std::span(ids));
      node.label.assign(label.begin(), label.end());
      const std::uint32_t number = add(std::move(node));
      if (i < blocks) last_full = number;
    }
    return last_full;
  }

  void key(std::uint32_t name_space, const std::string& name) {
    ArchiveNode node;
    node.name_space = name_space;
    node.tokens = sample_.head.geometry.block_tokens;
    node.kind = BlockKind::key;
    const auto label = std::as_bytes(std::span(name));
    node.label.assign(label.begin(), label.end());
    add(std::move(node));
  }

  void new_span() { fresh_ = true; }

  void session(const std::string& name, std::vector<std::int32_t> tokens, std::size_t states) {
    SessionWithStates one;
    one.session.name = name;
    one.session.tokens = std::move(tokens);
    one.session.metadata = {{"lang", "de"}, {"title", ""}};
    one.session.priority = -3;
    one.session.time_to_live_s = 99;
    one.session.created_unix_ns = 5;
    one.session.used_unix_ns = 6;
    one.session.kept = true;
    one.session.keep_max_bytes = 1 << 20;
    for (std::size_t i = 0; i < states; ++i) {
      ArchiveState state;
      state.label = "state-" + std::to_string(i);
      state.position = static_cast<std::uint32_t>(one.session.tokens.size());
      state.bytes.assign(1000 * i + 3, static_cast<std::byte>(i + 1));
      one.states.push_back(std::move(state));
    }
    sample_.sessions.push_back(std::move(one));
  }

  [[nodiscard]] Sample& sample() noexcept { return sample_; }

 private:
  std::uint32_t add(ArchiveNode node) {
    const Geometry& geometry = sample_.head.geometry;
    const bool follows = node.parent != no_node && node.parent + 1 == next_;
    bool fits = !fresh_ && !sample_.spans.empty();
    if (fits) {
      const ArchiveSpan& span = sample_.spans.back();
      const std::uint64_t rows = span.rows + node.tokens;
      fits = span.nodes.size() < snapshot_span_nodes &&
             rows * geometry.token_bytes() <= snapshot_span_bytes &&
             (node.parent == no_node || node.parent < span.first_node || follows);
    }
    if (!fits) sample_.spans.push_back({next_, {}, 0});
    fresh_ = false;
    ArchiveSpan& span = sample_.spans.back();
    span.rows += node.has_rows ? node.tokens : 0;
    first_.push_back(node.first_token);
    span.nodes.push_back(std::move(node));
    return next_++;
  }

  Sample sample_;
  std::vector<std::uint32_t> first_;
  std::uint32_t next_ = 0;
  bool fresh_ = true;
};

inline Geometry geometry_of(std::uint32_t layers, std::uint32_t key_row, std::uint32_t value_row,
                            std::uint32_t block_tokens, const std::string& dtype = "f16") {
  Geometry geometry;
  geometry.layers.assign(layers, LayerRows{key_row, value_row});
  geometry.dtype = dtype;
  geometry.block_tokens = block_tokens;
  return geometry;
}

/// A small snapshot with everything in it.
inline Sample small_sample(std::uint32_t block_tokens = 4) {
  SampleBuilder builder(geometry_of(2, 16, 24, block_tokens), 3);
  const std::uint32_t trunk = builder.chain(no_node, 0, 3, 1, 100);
  builder.chain(no_node, 1, 2, 0, 100);
  builder.key(0, "layer 7 of expert");
  builder.key(2, std::string(64, 'k'));
  builder.new_span();
  builder.chain(trunk, 0, 1, 2, 500);
  builder.chain(trunk, 0, 2, 0, 900);
  builder.session("chat", {100, 103, 106, 7}, 2);
  builder.session("empty", {}, 0);
  return std::move(builder.sample());
}

inline RowReader rows_of(const Sample& sample, const ArchiveSpan& span) {
  const auto planes = plane_shapes(sample.head.geometry);
  return [&span, planes](std::size_t plane, std::uint32_t first,
                         std::span<std::byte> out) -> Result<void> {
    fill_rows(span, plane, first, planes[plane].row_bytes, out);
    return {};
  };
}

inline WriterTotals write_sample(const Sample& sample, ByteSink& sink, WriterOptions options) {
  auto writer = need(ArchiveWriter::start(sink, sample.head, sample.namespaces, options));
  for (const ArchiveSpan& span : sample.spans) need(writer.span(span, rows_of(sample, span)));
  for (const SessionWithStates& one : sample.sessions) {
    need(writer.session(one.session, one.states));
  }
  return need(writer.finish());
}

inline std::vector<std::byte> bytes_of(const Sample& sample,
                                       Compression compression = Compression::lz4,
                                       std::uint32_t threads = 1) {
  MemorySink sink;
  write_sample(sample, sink, {{compression, 0, Lossy::none}, threads});
  return std::move(sink.bytes);
}

/// A file without a name that holds these bytes.
File file_of(std::span<const std::byte> bytes);

inline bool same_node(const ArchiveNode& a, const ArchiveNode& b) {
  return a.parent == b.parent && a.name_space == b.name_space && a.first_token == b.first_token &&
         a.tokens == b.tokens && a.path_hash == b.path_hash &&
         a.published_unix_ns == b.published_unix_ns && a.used_unix_ns == b.used_unix_ns &&
         a.kind == b.kind && a.has_rows == b.has_rows && a.label == b.label;
}

inline bool same_session(const SessionWithStates& a, const SessionWithStates& b) {
  const ArchiveSession& x = a.session;
  const ArchiveSession& y = b.session;
  bool same = x.name == y.name && x.name_space == y.name_space && x.tokens == y.tokens &&
              x.metadata == y.metadata && x.priority == y.priority &&
              x.time_to_live_s == y.time_to_live_s && x.created_unix_ns == y.created_unix_ns &&
              x.used_unix_ns == y.used_unix_ns && x.kept == y.kept &&
              x.keep_max_bytes == y.keep_max_bytes && a.states.size() == b.states.size();
  for (std::size_t i = 0; same && i < a.states.size(); ++i) {
    same = a.states[i].label == b.states[i].label && a.states[i].position == b.states[i].position &&
           a.states[i].bytes == b.states[i].bytes;
  }
  return same;
}

/// All rows of the span that `next` has returned, compared with what they must be.
void check_rows(ArchiveReader& reader, const Sample& sample, const ArchiveSpan& span,
                std::uint32_t threads);
/// Reads everything from front to back and compares it.
void check_all(ArchiveReader& reader, const Sample& sample, std::uint32_t threads);
/// Reads everything by the index and compares it.
void check_by_index(const ArchiveReader& reader, const Sample& sample);

}  // namespace esker::test
