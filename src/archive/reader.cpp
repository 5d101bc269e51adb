// Invariants
// 1. A payload is compared with its sum before anything in it is believed.
// 2. After a failed `next` the place in the stream is not known: every later one fails like it.
// 3. Streams and files go through the same checks; only skipping differs.
#include "archive/reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "archive/damage.hpp"
#include "archive/payloads.hpp"
#include "archive/planes.hpp"
#include "archive/reader_state.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"
#include "base/hash.hpp"

namespace esker::detail {

namespace {

Failure damaged(std::string_view where, std::string_view field, std::uint64_t found,
                std::uint64_t expected) {
  return fail_field(Errc::corrupt, where, field, hex(found), hex(expected), damage_hint);
}

}  // namespace

Result<void> check_payload(const FrameHeader& frame, std::span<const std::byte> payload,
                           std::string_view where) {
  const std::uint64_t sum = xxh3(payload);
  if (frame.payload_checksum == sum) return {};
  return damaged(where, "payload_checksum", frame.payload_checksum, sum);
}

Result<void> decode_rows(const FrameHeader& frame, const RowShape& shape,
                         std::span<const std::byte> payload, std::span<std::byte> out,
                         CodecMemory& memory, std::string_view where) {
  if (is_raw(frame)) {
    if (frame.content != frame.payload_checksum) {
      return damaged(where, "content", frame.content, frame.payload_checksum);
    }
    if (out.data() != payload.data()) std::memcpy(out.data(), payload.data(), payload.size());
    return {};
  }
  const ChunkCoding coding{frame.compression, frame.filter, frame.lossy};
  if (auto ok = decode_chunk(coding, shape, payload, out, memory, where); !ok) return ok;
  if (const std::uint64_t sum = xxh3(out); sum != frame.content) {
    return damaged(where, "content", frame.content, sum);
  }
  return {};
}

ArchiveReader::State::State(ByteSource from, SnapshotHead header)
    : source(std::move(from)),
      head(std::move(header)),
      planes(plane_shapes(head.geometry)),
      order(head, planes) {}

Result<void> ArchiveReader::State::check_place() const {
  if (broken) return tl::make_unexpected(*broken);
  if (!midway) return {};
  return fail(Errc::no_memory, source.label() + ": memory ran out while this was read before");
}

Result<FrameHeader> ArchiveReader::State::raw_frame() {
  FrameHeader frame{};
  const auto bytes = std::as_writable_bytes(std::span(&frame, 1));
  auto ok = source.read(bytes, "the header of frame " + std::to_string(sequence));
  if (!ok) return failure_of(ok);
  return frame;
}

Result<FrameHeader> ArchiveReader::State::frame() {
  const std::uint64_t offset = source.position();
  auto frame = raw_frame();
  if (!frame) return frame;
  auto ok = check_frame(*frame, sequence, head, source.label());
  if (ok) ok = order.accept(*frame, offset, where(*frame));
  if (!ok) {
    ok.error().message += " (at offset " + std::to_string(offset) + ")";
    return failure_of(ok);
  }
  ++sequence;
  return frame;
}

Result<void> ArchiveReader::State::padding(const FrameHeader& frame) {
  const std::uint64_t rest = frame.payload_bytes % 8;
  if (rest == 0) return {};
  std::array<std::byte, 8> pad{};
  const auto bytes = std::span(pad).first(8 - static_cast<std::size_t>(rest));
  if (auto ok = source.read(bytes, "padding"); !ok) return ok;
  if (all_zero(bytes)) return {};
  return fail_field(Errc::corrupt, where(frame), "padding", "not zero", "zeros",
                    "the file is damaged: get it anew");
}

Result<void> ArchiveReader::State::payload(const FrameHeader& frame, std::vector<std::byte>& out) {
  const std::string what = "the payload of frame " + std::to_string(frame.sequence);
  if (auto ok = source.read(out, frame.payload_bytes, what); !ok) return ok;
  return padding(frame);
}

Result<void> ArchiveReader::State::skip_payload(const FrameHeader& frame) {
  const std::string what = "the payload of frame " + std::to_string(frame.sequence);
  if (auto ok = source.skip(frame.payload_bytes, what); !ok) return ok;
  return padding(frame);
}

Result<std::vector<std::byte>> ArchiveReader::State::whole(const FrameHeader& frame) {
  std::vector<std::byte> bytes;
  if (auto ok = payload(frame, bytes); !ok) return failure_of(ok);
  if (auto ok = check_payload(frame, bytes, where(frame)); !ok) return failure_of(ok);
  return bytes;
}

Result<void> ArchiveReader::State::index_payload(const FrameHeader& frame) {
  std::array<std::byte, 16'384> part{};
  StreamingHash sum;
  for (std::uint64_t left = frame.payload_bytes; left > 0;) {
    const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(left, part.size()));
    const auto bytes = std::span(part).first(now);
    if (auto ok = source.read(bytes, "the index"); !ok) return ok;
    sum.update(bytes);
    left -= now;
  }
  if (auto ok = padding(frame); !ok) return ok;
  if (sum.digest() == frame.payload_checksum) return {};
  return damaged(where(frame), "payload_checksum", frame.payload_checksum, sum.digest());
}

Result<ArchiveSpan> ArchiveReader::State::read_span(const FrameHeader& frame) {
  auto bytes = whole(frame);
  if (!bytes) return failure_of(bytes);
  auto span = decode_span(frame, *bytes, head, where(frame));
  if (!span) return span;
  auto ok = nodes.add(*span, Errc::corrupt, where(frame));
  if (!ok) return failure_of(ok);
  rows_open = true;
  return span;
}

Result<SessionWithStates> ArchiveReader::State::read_session(const FrameHeader& frame) {
  auto bytes = whole(frame);
  if (!bytes) return failure_of(bytes);
  auto decoded = decode_session(*bytes, namespaces.size(), where(frame));
  if (!decoded) return failure_of(decoded);
  *bytes = {};
  if (!session_names.insert(decoded->session.name).second) {
    return fail_field(Errc::corrupt, where(frame), "name", "that of an earlier session", "another");
  }
  order.expect_states(decoded->states);
  SessionWithStates out{std::move(decoded->session), {}};
  std::set<std::string, std::less<>> labels;
  for (std::uint32_t i = 0; i < decoded->states; ++i) {
    auto header = this->frame();
    if (!header) return failure_of(header);
    auto payload = whole(*header);
    if (!payload) return failure_of(payload);
    auto state = decode_state(std::move(*payload), out.session, where(*header));
    if (!state) return failure_of(state);
    if (!labels.insert(state->label).second) {
      return fail_field(Errc::corrupt, where(*header), "label", "that of an earlier state",
                        "another");
    }
    out.states.push_back(std::move(*state));
  }
  return out;
}

Result<ArchivePart> ArchiveReader::State::next_part() {
  for (;;) {
    rows_open = false;
    auto header = frame();
    if (!header) return failure_of(header);
    switch (static_cast<FrameKind>(header->kind)) {
      case FrameKind::span: {
        auto span = read_span(*header);
        if (!span) return failure_of(span);
        return ArchivePart(std::move(*span));
      }
      case FrameKind::session: {
        auto session = read_session(*header);
        if (!session) return failure_of(session);
        return ArchivePart(std::move(*session));
      }
      case FrameKind::end: {
        if (auto ok = source.expect_end(); !ok) return failure_of(ok);
        return ArchivePart(ArchiveEnd{sequence});
      }
      case FrameKind::index:
        if (auto ok = index_payload(*header); !ok) return failure_of(ok);
        break;
      default:
        if (auto ok = skip_payload(*header); !ok) return failure_of(ok);
        break;
    }
  }
}

namespace {

Result<SnapshotHead> read_head(ByteSource& source) {
  std::vector<std::byte> bytes(sizeof(SnapshotHeader));
  if (auto ok = source.read(std::span(bytes), "the head"); !ok) return failure_of(ok);
  auto size = snapshot_head_bytes(bytes, source.label());
  if (!size) return failure_of(size);
  bytes.resize(*size);
  const auto rest = std::span(bytes).subspan(sizeof(SnapshotHeader));
  if (auto ok = source.read(rest, "the head"); !ok) return failure_of(ok);
  return decode_snapshot_head(bytes, source.label());
}

}  // namespace

Result<ArchiveReader> ArchiveReader::start(ByteSource source) {
  auto head = read_head(source);
  if (!head) return failure_of(head);
  auto state = std::make_unique<State>(std::move(source), std::move(*head));
  auto frame = state->frame();
  if (!frame) return failure_of(frame);
  auto bytes = state->whole(*frame);
  if (!bytes) return failure_of(bytes);
  auto names = decode_namespaces(*bytes, frame->rows, state->head.use, state->where(*frame));
  if (!names) return failure_of(names);
  state->namespaces = std::move(*names);
  state->nodes = NodeTable(state->head.geometry.block_tokens,
                           static_cast<std::uint32_t>(state->namespaces.size()));
  return ArchiveReader(std::move(state));
}

Result<ArchiveReader> ArchiveReader::open(File file) {
  return guarded([&]() -> Result<ArchiveReader> {
    auto source = ByteSource::of_file(std::move(file));
    if (!source) return failure_of(source);
    return start(std::move(*source));
  });
}

Result<ArchiveReader> ArchiveReader::open_stream(int fd, std::string label) {
  return guarded([&] { return start(ByteSource::of_stream(fd, std::move(label))); });
}

ArchiveReader::ArchiveReader(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
ArchiveReader::ArchiveReader(ArchiveReader&&) noexcept = default;
ArchiveReader& ArchiveReader::operator=(ArchiveReader&&) noexcept = default;
ArchiveReader::~ArchiveReader() = default;

const SnapshotHead& ArchiveReader::head() const noexcept { return state_->head; }
const std::vector<ArchiveNamespace>& ArchiveReader::namespaces() const noexcept {
  return state_->namespaces;
}
bool ArchiveReader::seekable() const noexcept { return state_->source.seekable(); }
const std::string& ArchiveReader::label() const noexcept { return state_->source.label(); }
std::uint64_t ArchiveReader::file_bytes() const noexcept { return state_->source.file_bytes(); }
std::uint64_t ArchiveReader::position() const noexcept { return state_->source.position(); }
const std::vector<RowShape>& ArchiveReader::planes() const noexcept { return state_->planes; }
const NodeTable& ArchiveReader::nodes() const noexcept { return state_->nodes; }

Result<ArchivePart> ArchiveReader::next() {
  return guarded([&]() -> Result<ArchivePart> {
    if (auto ok = state_->check_place(); !ok) return failure_of(ok);
    if (state_->order.ended()) return ArchivePart(ArchiveEnd{state_->sequence});
    state_->midway = true;
    auto part = state_->next_part();
    if (!part) state_->broken = part.error();
    state_->midway = false;
    return part;
  });
}

}  // namespace esker::detail
