// Invariants
// 1. Nothing is written that a reader refuses: nodes, sessions and frames pass the same checks.
// 2. Of a span, all chunks are coded before its first frame is written.
// 3. After a failed write the place in the sink is not known, and nothing more is written.
#include "archive/writer.hpp"

#include <algorithm>
#include <set>

#include "archive/frame_order.hpp"
#include "archive/jobs.hpp"
#include "archive/node_rules.hpp"
#include "archive/payloads.hpp"
#include "archive/planes.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"
#include "base/hash.hpp"

namespace esker::detail {

namespace {

/// A chunk of a span, coded. The memory is used again for the next span.
struct CodedChunk {
  ChunkCursor place;
  std::uint32_t rows = 0;
  ChunkCoding coding;
  std::uint64_t content = 0;
  std::uint64_t stored_sum = 0;
  std::vector<std::byte> stored;
};

/// What one worker codes with.
struct Bench {
  std::vector<std::byte> rows;
  std::vector<std::byte> decoded;
  CodecMemory memory;
  std::array<ErrorSums, 2> errors;
};

}  // namespace

struct ArchiveWriter::State {
  State(ByteSink& to, const SnapshotHead& header, const WriterOptions& wanted)
      : sink(to),
        head(header),
        options(wanted),
        planes(plane_shapes(header.geometry)),
        order(head, planes, &index) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] Result<void> put(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> put_frame(FrameHeader frame, std::uint64_t payload_sum,
                                       std::span<const std::byte> payload,
                                       std::span<const std::byte> more = {});
  [[nodiscard]] Result<void> put_frame(const FrameHeader& frame,
                                       std::span<const std::byte> payload) {
    return put_frame(frame, xxh3(payload), payload);
  }
  void lay_out(std::uint32_t rows);
  [[nodiscard]] Result<void> code(CodedChunk& chunk, const RowReader& rows, Bench& bench) const;
  [[nodiscard]] Result<void> put_span(const ArchiveSpan& span, const RowReader& rows);
  [[nodiscard]] Result<void> put_chunk(const CodedChunk& chunk);
  [[nodiscard]] Result<void> put_session(const ArchiveSession& session,
                                         std::span<const ArchiveState> states);
  [[nodiscard]] Result<void> check_usable() const;
  [[nodiscard]] std::string where() const { return frame_text(sequence, sink.label()); }

  ByteSink& sink;
  SnapshotHead head;
  WriterOptions options;
  std::vector<RowShape> planes;
  std::vector<std::byte> index;
  FrameOrder order;
  NodeTable nodes;
  std::size_t namespaces = 0;
  std::set<std::string, std::less<>> session_names;
  std::vector<CodedChunk> chunks;
  std::size_t chunk_count = 0;
  std::vector<Bench> benches;
  std::uint64_t sequence = 0;
  std::uint64_t position = 0;
  WriterTotals totals;
  bool writing = false;  ///< stays true when a write fails
};

Result<void> ArchiveWriter::State::check_usable() const {
  if (order.ended()) return fail(Errc::invalid, sink.label() + ": the snapshot is finished");
  if (!writing) return {};
  return fail(Errc::invalid, sink.label() + ": writing failed before, so the snapshot is lost");
}

Result<void> ArchiveWriter::State::put(std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  auto done = sink.write(bytes);
  if (done) position += bytes.size();
  return done;
}

Result<void> ArchiveWriter::State::put_frame(FrameHeader frame, std::uint64_t payload_sum,
                                             std::span<const std::byte> payload,
                                             std::span<const std::byte> more) {
  frame.sequence = sequence;
  frame.payload_bytes = payload.size() + more.size();
  seal_frame_of_sum(frame, payload_sum, head);
  // A frame that breaks the order here would be a fault of this file's own code.
  auto done = order.accept(frame, position, where());
  if (done) done = put(std::as_bytes(std::span(&frame, 1)));
  if (done) done = put(payload);
  if (done) done = put(more);
  static constexpr std::array<std::byte, 8> zeros{};
  const std::uint64_t pad = align_up(frame.payload_bytes, 8) - frame.payload_bytes;
  if (done) done = put(std::span(zeros).first(static_cast<std::size_t>(pad)));
  if (done) ++sequence;
  return done;
}

void ArchiveWriter::State::lay_out(std::uint32_t rows) {
  chunk_count = 0;
  for (ChunkCursor at{0, 0, rows}; !at.done(planes.size()); at.step(planes)) {
    if (chunk_count == chunks.size()) chunks.emplace_back();
    chunks[chunk_count].place = at;
    chunks[chunk_count].rows = at.rows(planes);
    ++chunk_count;
  }
}

Result<void> ArchiveWriter::State::code(CodedChunk& chunk, const RowReader& rows,
                                        Bench& bench) const {
  const RowShape& shape = planes[chunk.place.plane];
  const std::size_t bytes = std::size_t{chunk.rows} * shape.row_bytes;
  if (options.codec.compression == Compression::raw && options.codec.lossy == Lossy::none) {
    chunk.stored.resize(bytes);
    auto got = rows(chunk.place.plane, chunk.place.first_row, chunk.stored);
    if (!got) return got;
    chunk.coding = {};
    chunk.stored_sum = xxh3(chunk.stored);
    chunk.content = chunk.stored_sum;
    return {};
  }
  bench.rows.resize(bytes);
  auto got = rows(chunk.place.plane, chunk.place.first_row, bench.rows);
  if (!got) return got;
  ErrorSums& errors = bench.errors[static_cast<std::size_t>(shape.plane)];
  auto coding = encode_chunk(bench.rows, shape, options.codec, bench.memory, chunk.stored, &errors);
  if (!coding) return failure_of(coding);
  chunk.coding = *coding;
  chunk.stored_sum = xxh3(chunk.stored);
  if (coding->lossy == 0) {
    chunk.content = *coding == ChunkCoding{} ? chunk.stored_sum : xxh3(bench.rows);
    return {};
  }
  // What readers get out of it, and not what went in, is what they compare.
  bench.decoded.resize(bytes);
  auto back = decode_chunk(*coding, shape, chunk.stored, bench.decoded, bench.memory, sink.label());
  if (!back) return back;
  chunk.content = xxh3(bench.decoded);
  return {};
}

Result<void> ArchiveWriter::State::put_chunk(const CodedChunk& chunk) {
  FrameHeader frame{};
  frame.kind = static_cast<std::uint8_t>(FrameKind::chunk);
  frame.compression = chunk.coding.compression;
  frame.filter = chunk.coding.filter;
  frame.lossy = chunk.coding.lossy;
  frame.number = chunk.place.plane;
  frame.first_row = chunk.place.first_row;
  frame.rows = chunk.rows;
  frame.content = chunk.content;
  return put_frame(frame, chunk.stored_sum, chunk.stored);
}

Result<void> ArchiveWriter::State::put_span(const ArchiveSpan& span, const RowReader& rows) {
  auto ok = check_span(span, head, Errc::invalid, where());
  if (!ok) return ok;
  if (order.sessions() > 0) {
    return fail(Errc::invalid, where() + ": spans come before sessions");
  }
  lay_out(span.rows);
  for (Bench& bench : benches) bench.errors = {};
  ok = nodes.add(span, Errc::invalid, where());
  if (!ok) return ok;
  ok = run_jobs(chunk_count, options.threads, [&](std::size_t job, std::size_t worker) {
    return code(chunks[job], rows, benches[worker]);
  });
  if (!ok) {
    nodes.drop_from(span.first_node);
    return ok;
  }
  writing = true;
  FrameHeader frame{};
  frame.kind = static_cast<std::uint8_t>(FrameKind::span);
  frame.number = span.first_node;
  frame.rows = span.rows;
  frame.content = span.nodes.size();
  ok = put_frame(frame, encode_span(span));
  for (std::size_t i = 0; ok && i < chunk_count; ++i) ok = put_chunk(chunks[i]);
  if (!ok) return ok;
  writing = false;
  for (const Bench& bench : benches) {
    totals.errors[0].add(bench.errors[0]);
    totals.errors[1].add(bench.errors[1]);
  }
  for (const ArchiveNode& node : span.nodes) totals.nodes += node.has_rows ? 1 : 0;
  totals.rows += span.rows;
  totals.raw_bytes += span.rows * head.geometry.token_bytes();
  return {};
}

Result<void> ArchiveWriter::State::put_session(const ArchiveSession& session,
                                               std::span<const ArchiveState> states) {
  auto payload = encode_session(session, states.size(), namespaces, where());
  if (!payload) return failure_of(payload);
  if (session_names.contains(session.name)) {
    return fail(Errc::invalid, where() + ": there is a session of that name already");
  }
  std::vector<std::vector<std::byte>> heads;
  std::set<std::string_view> labels;
  for (const ArchiveState& state : states) {
    auto bytes = encode_state(state, session, where());
    if (!bytes) return failure_of(bytes);
    if (!labels.insert(state.label).second) {
      return fail(Errc::invalid, where() + ": two states have the same label");
    }
    heads.push_back(std::move(*bytes));
  }
  session_names.insert(session.name);
  writing = true;
  FrameHeader frame{};
  frame.kind = static_cast<std::uint8_t>(FrameKind::session);
  frame.number = order.sessions();
  if (auto ok = put_frame(frame, *payload); !ok) return ok;
  order.expect_states(static_cast<std::uint16_t>(states.size()));
  for (std::uint32_t i = 0; i < states.size(); ++i) {
    StreamingHash sum;
    sum.update(heads[i]);
    sum.update(states[i].bytes);
    frame = {};
    frame.kind = static_cast<std::uint8_t>(FrameKind::state);
    frame.number = i;
    if (auto ok = put_frame(frame, sum.digest(), heads[i], states[i].bytes); !ok) return ok;
  }
  writing = false;
  return {};
}

ArchiveWriter::ArchiveWriter(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
ArchiveWriter::ArchiveWriter(ArchiveWriter&&) noexcept = default;
ArchiveWriter& ArchiveWriter::operator=(ArchiveWriter&&) noexcept = default;
ArchiveWriter::~ArchiveWriter() = default;

Result<ArchiveWriter> ArchiveWriter::start(ByteSink& sink, const SnapshotHead& head,
                                           std::span<const ArchiveNamespace> namespaces,
                                           const WriterOptions& options) {
  return guarded([&]() -> Result<ArchiveWriter> {
    if (options.codec.lossy != Lossy::none && options.codec.lossy != head.lossy) {
      return fail(Errc::invalid, sink.label() +
                                     ": rows are to be quantised in another way than "
                                     "the head says");
    }
    auto bytes = encode_snapshot_head(head);
    if (!bytes) return failure_of(bytes);
    auto names = encode_namespaces(namespaces, head.use, sink.label());
    if (!names) return failure_of(names);
    auto state = std::make_unique<State>(sink, head, options);
    state->options.threads = std::max<std::uint32_t>(1, options.threads);
    state->benches.resize(state->options.threads);
    state->namespaces = namespaces.size();
    state->nodes =
        NodeTable(head.geometry.block_tokens, static_cast<std::uint32_t>(namespaces.size()));
    state->writing = true;
    if (auto ok = state->put(*bytes); !ok) return failure_of(ok);
    FrameHeader frame{};
    frame.kind = static_cast<std::uint8_t>(FrameKind::namespaces);
    frame.rows = static_cast<std::uint32_t>(namespaces.size());
    if (auto ok = state->put_frame(frame, *names); !ok) return failure_of(ok);
    state->writing = false;
    return ArchiveWriter(std::move(state));
  });
}

std::uint32_t ArchiveWriter::span_rows() const noexcept {
  const std::uint64_t rows = snapshot_span_bytes / state_->head.geometry.token_bytes();
  const std::uint64_t most =
      std::uint64_t{snapshot_span_nodes} * state_->head.geometry.block_tokens;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(rows, 1, most));
}

std::uint32_t ArchiveWriter::next_node() const noexcept { return state_->nodes.size(); }

const NodeTable& ArchiveWriter::nodes() const noexcept { return state_->nodes; }

Result<void> ArchiveWriter::span(const ArchiveSpan& span, const RowReader& rows) {
  return guarded([&]() -> Result<void> {
    if (auto ok = state_->check_usable(); !ok) return ok;
    return state_->put_span(span, rows);
  });
}

Result<void> ArchiveWriter::session(const ArchiveSession& session,
                                    std::span<const ArchiveState> states) {
  return guarded([&]() -> Result<void> {
    if (auto ok = state_->check_usable(); !ok) return ok;
    return state_->put_session(session, states);
  });
}

Result<WriterTotals> ArchiveWriter::finish() {
  return guarded([&]() -> Result<WriterTotals> {
    if (auto ok = state_->check_usable(); !ok) return failure_of(ok);
    state_->writing = true;
    const std::uint64_t offset = state_->position;
    FrameHeader frame{};
    frame.kind = static_cast<std::uint8_t>(FrameKind::index);
    frame.content = state_->order.groups();
    if (auto ok = state_->put_frame(frame, state_->index); !ok) return failure_of(ok);
    frame = {};
    frame.kind = static_cast<std::uint8_t>(FrameKind::end);
    frame.content = offset;
    if (auto ok = state_->put_frame(frame, {}); !ok) return failure_of(ok);
    state_->writing = false;
    state_->totals.file_bytes = state_->position;
    return state_->totals;
  });
}

}  // namespace esker::detail
