// Invariants
// 1. Damage is what the file says wrongly; what the system refuses (reading, memory) is an error.
// 2. What depends on a damaged part is not reported as damage of its own: after a lost frame only
//    what frames say of themselves is checked, until the end.
// 3. Memory is that of a reader with one thread, and a bounded list.
#include <algorithm>
#include <cstring>

#include "archive/payloads.hpp"
#include "archive/reader_state.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"

namespace esker::detail {

namespace {

constexpr std::size_t most_damage = 1000;
constexpr std::size_t scan_bytes = std::size_t{1} << 20;

}  // namespace

class ArchiveReader::Check {
 public:
  Check(State& state, const Progress& progress) : state_(state), progress_(progress) {
    report_.frames = state.sequence;
  }

  Result<SnapshotCheck> run() {
    for (bool more = true; more;) {
      auto done = step();
      if (!done) return failure_of(done);
      more = *done;
      if (progress_) progress_(state_.source.position(), state_.source.file_bytes());
    }
    return std::move(report_);
  }

 private:
  /// One frame; false when there is no more to read.
  Result<bool> step() {
    offset_ = state_.source.position();
    number_ = state_.sequence;
    told_ = false;
    auto frame = state_.raw_frame();
    if (!frame) return stop(frame.error());
    if (auto ok = check_header(*frame); !ok) {
      if (auto noted = note(ok.error()); !noted) return failure_of(noted);
      return find_next();
    }
    number_ = frame->sequence;
    state_.sequence = number_ + 1;
    ++report_.frames;
    if (in_order_) {
      auto ok = state_.order.accept(*frame, offset_, state_.where(*frame));
      if (!ok) {
        in_order_ = false;
        if (auto noted = note(ok.error()); !noted) return failure_of(noted);
      }
    }
    auto ok = contents(*frame);
    if (!ok && placed_) {
      if (auto noted = note(ok.error()); !noted) return failure_of(noted);
    }
    if (!ok && !placed_) return stop(ok.error());
    return frame->kind != static_cast<std::uint8_t>(FrameKind::end);
  }

  /// Behind a lost header the sequence is whatever comes, as long as it grows.
  Result<void> check_header(const FrameHeader& frame) const {
    const bool any = !in_order_ && frame.sequence > state_.sequence;
    return check_frame(frame, any ? frame.sequence : state_.sequence, state_.head,
                       state_.source.label());
  }

  /// What follows the header. `placed_` tells afterwards whether the next frame can be read.
  Result<void> contents(const FrameHeader& frame) {
    placed_ = false;
    if (frame.kind == static_cast<std::uint8_t>(FrameKind::index)) {
      auto ok = state_.index_payload(frame);
      placed_ = state_.source.position() == frame_end(frame);
      return ok;
    }
    auto ok = state_.source.read(payload_, frame.payload_bytes,
                                 "the payload of frame " + std::to_string(frame.sequence));
    if (!ok) return ok;
    ok = state_.padding(frame);
    placed_ = state_.source.position() == frame_end(frame);
    if (ok) ok = check_payload(frame, payload_, state_.where(frame));
    switch (static_cast<FrameKind>(frame.kind)) {
      case FrameKind::span:
        return ok ? span(frame) : lost_nodes(std::move(ok));
      case FrameKind::chunk:
        return ok ? chunk(frame) : std::move(ok);
      case FrameKind::session:
        return ok ? session(frame) : lost_session(std::move(ok));
      case FrameKind::state:
        return ok ? engine_state(frame) : std::move(ok);
      case FrameKind::end:
        return ok ? state_.source.expect_end() : std::move(ok);
      default:
        return ok;
    }
  }

  Result<void> span(const FrameHeader& frame) {
    const std::string where = state_.where(frame);
    auto span = decode_span(frame, payload_, state_.head, where);
    if (!span) return lost_nodes(failure_of(span));
    if (nodes_known_ && in_order_) {
      auto ok = state_.nodes.add(*span, Errc::corrupt, where);
      if (!ok) return lost_nodes(std::move(ok));
    }
    for (const ArchiveNode& node : span->nodes) report_.blocks += node.has_rows ? 1 : 0;
    return {};
  }

  Result<void> chunk(const FrameHeader& frame) {
    const std::string where = state_.where(frame);
    const ChunkCursor here{frame.number, frame.first_row, frame.first_row + frame.rows};
    auto ok = check_chunk_frame(frame, here, state_.planes, state_.head.lossy, where);
    if (!ok) return ok;
    const RowShape& shape = state_.planes[frame.number];
    rows_.resize(std::size_t{frame.rows} * shape.row_bytes);
    ok = decode_rows(frame, shape, payload_, rows_, memory_, where);
    if (ok) report_.raw_bytes += rows_.size();
    return ok;
  }

  Result<void> session(const FrameHeader& frame) {
    const std::string where = state_.where(frame);
    auto decoded = decode_session(payload_, state_.namespaces.size(), where);
    if (!decoded) return lost_session(failure_of(decoded));
    if (in_order_) state_.order.expect_states(decoded->states);
    session_ = std::move(decoded->session);
    labels_.clear();
    ++report_.sessions;
    if (state_.session_names.insert(session_->name).second) return {};
    return fail_field(Errc::corrupt, where, "name", "that of an earlier session", "another");
  }

  Result<void> engine_state(const FrameHeader& frame) {
    if (!session_) return {};
    auto state = decode_state(std::move(payload_), *session_, state_.where(frame));
    payload_.clear();
    if (!state) return failure_of(state);
    if (labels_.insert(state->label).second) return {};
    return fail_field(Errc::corrupt, state_.where(frame), "label", "that of an earlier state",
                      "another");
  }

  Result<void> lost_nodes(Result<void> why) {
    nodes_known_ = false;
    return why;
  }

  /// How many states follow is not known, so the order is not either.
  Result<void> lost_session(Result<void> why) {
    session_.reset();
    in_order_ = false;
    return why;
  }

  [[nodiscard]] std::uint64_t frame_end(const FrameHeader& frame) const noexcept {
    return offset_ + sizeof frame + align_up(frame.payload_bytes, 8);
  }

  /// Looks for the next header behind a damaged one.
  Result<bool> find_next() {
    in_order_ = false;
    session_.reset();
    if (!state_.source.seekable()) return false;
    const std::uint64_t size = state_.source.file_bytes();
    std::vector<std::byte> window;
    for (std::uint64_t at = offset_ + 8; at + sizeof(FrameHeader) <= size;) {
      const std::uint64_t left = size - at;
      window.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, scan_bytes)));
      state_.source.seek(at);
      if (auto ok = state_.source.read(std::span(window), "a frame"); !ok) {
        return failure_of(ok);
      }
      std::size_t in_window = 0;
      for (; in_window + sizeof(FrameHeader) <= window.size(); in_window += 8) {
        if (!is_header(std::span(window).subspan(in_window))) continue;
        state_.source.seek(at + in_window);
        return true;
      }
      at += in_window;
    }
    return false;
  }

  [[nodiscard]] bool is_header(std::span<const std::byte> bytes) const {
    FrameHeader frame;
    std::memcpy(&frame, bytes.data(), sizeof frame);
    return frame.magic == frame_magic && frame.sequence > state_.sequence &&
           check_frame(frame, frame.sequence, state_.head, state_.source.label()).has_value();
  }

  Result<bool> stop(const Error& why) {
    if (auto noted = note(why); !noted) return failure_of(noted);
    return false;
  }

  Result<void> note(const Error& why) {
    if (why.code != Errc::corrupt && why.code != Errc::incompatible) {
      return tl::make_unexpected(why);
    }
    // One thing for each frame: what follows from it says nothing more.
    if (told_ || report_.damage.size() > most_damage) return {};
    told_ = true;
    const std::string text =
        report_.damage.size() == most_damage ? "more damage, which is not listed" : why.message;
    const auto frame = static_cast<std::uint32_t>(std::min<std::uint64_t>(number_, UINT32_MAX));
    report_.damage.push_back(
        {state_.source.label(), frame, text + " (at offset " + std::to_string(offset_) + ")"});
    return {};
  }

  State& state_;
  const Progress& progress_;
  SnapshotCheck report_;
  std::uint64_t offset_ = 0;  ///< of the frame that is looked at
  std::uint64_t number_ = 0;
  bool told_ = false;
  bool placed_ = false;
  bool in_order_ = true;
  bool nodes_known_ = true;
  std::optional<ArchiveSession> session_;  ///< the last one, when it is good
  std::set<std::string, std::less<>> labels_;
  std::vector<std::byte> payload_;
  std::vector<std::byte> rows_;
  CodecMemory memory_;
};

Result<SnapshotCheck> check_archive(ArchiveReader& reader, const Progress& progress) {
  return guarded([&]() -> Result<SnapshotCheck> {
    ArchiveReader::State& state = *reader.state_;
    if (auto ok = state.check_place(); !ok) return failure_of(ok);
    state.midway = true;
    auto report = ArchiveReader::Check(state, progress).run();
    return report;
  });
}

}  // namespace esker::detail
