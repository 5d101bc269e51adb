// Invariants
// 1. One worker at a time reads on, by whole frames, so the place in the stream is always between
//    two frames. Of a file it goes past the payload, which it reads beside the others; decoding and
//    taking always go on beside them.
// 2. Memory is one chunk, as stored and decoded, per worker.
#include <atomic>
#include <mutex>

#include "archive/jobs.hpp"
#include "archive/reader_state.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"

namespace esker::detail {

namespace {

/// What one worker reads and decodes with.
struct Bench {
  FrameHeader frame{};
  std::uint64_t payload_offset = 0;
  std::vector<std::byte> payload;
  std::vector<std::byte> rows;
  CodecMemory memory;
};

}  // namespace

/// The workers' common part.
class ArchiveReader::RowRun {
 public:
  RowRun(State& state, const RowFilter& wanted, const RowTaker& taker)
      : state_(state), wanted_(wanted), taker_(taker) {}

  Result<void> work() {
    Bench bench;
    for (;;) {
      auto more = read(bench);
      if (!more) return failure_of(more);
      if (!*more) return {};
      if (auto ok = deliver(bench); !ok) {
        stop_.store(true, std::memory_order_relaxed);
        return ok;
      }
    }
  }

 private:
  /// The next wanted chunk; false when there is none.
  Result<bool> read(Bench& bench) {
    const std::lock_guard lock(mutex_);
    while (!stop_.load(std::memory_order_relaxed) && !state_.midway && state_.order.chunks_left()) {
      state_.midway = true;
      auto more = read_one(bench);
      if (!more) {
        stop_.store(true, std::memory_order_relaxed);
        state_.broken = more.error();
      }
      state_.midway = false;
      if (!more || *more) return more;
    }
    return false;
  }

  Result<bool> read_one(Bench& bench) {
    auto frame = state_.frame();
    if (!frame) return failure_of(frame);
    bench.frame = *frame;
    bench.payload_offset = state_.source.position();
    const bool wanted = !wanted_ || wanted_(frame->first_row, frame->rows);
    const bool here = wanted && !state_.source.seekable();
    auto ok = here ? state_.payload(*frame, bench.payload) : state_.skip_payload(*frame);
    if (!ok) return failure_of(ok);
    return wanted;
  }

  Result<void> deliver(Bench& bench) {
    const FrameHeader& frame = bench.frame;
    const std::string where = state_.where(frame);
    if (state_.source.seekable()) {
      bench.payload.resize(static_cast<std::size_t>(frame.payload_bytes));
      auto ok = state_.source.file().read_at(bench.payload_offset, bench.payload);
      if (!ok) return ok;
    }
    if (auto ok = check_payload(frame, bench.payload, where); !ok) return ok;
    const RowShape& shape = state_.planes[frame.number];
    std::span<std::byte> rows = bench.payload;
    if (!is_raw(frame)) {
      bench.rows.resize(std::size_t{frame.rows} * shape.row_bytes);
      rows = bench.rows;
    }
    if (auto ok = decode_rows(frame, shape, bench.payload, rows, bench.memory, where); !ok) {
      return ok;
    }
    return taker_(frame.number, frame.first_row, rows);
  }

  State& state_;
  const RowFilter& wanted_;
  const RowTaker& taker_;
  std::mutex mutex_;
  std::atomic<bool> stop_{false};
};

Result<void> ArchiveReader::rows(const RowFilter& wanted, const RowTaker& taker,
                                 std::uint32_t threads) {
  return guarded([&]() -> Result<void> {
    if (auto ok = state_->check_place(); !ok) return ok;
    if (!state_->rows_open) {
      return fail(Errc::invalid,
                  state_->source.label() + ": rows can be taken once, right after their span");
    }
    state_->rows_open = false;
    RowRun run(*state_, wanted, taker);
    return run_workers(threads, [&run](std::size_t) { return run.work(); });
  });
}

}  // namespace esker::detail
