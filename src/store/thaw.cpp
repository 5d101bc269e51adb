// Invariants
// 1. Thawing is storing: room is reserved, rows are written, the path is published, as for any
//    writer. Killed at any point, the blocks are cold, and perhaps in the segments as well.
// 2. Rows come from a chunk that was decoded and checked whole. What does not check is condemned
//    for this handle, and the path ends before it.
// 3. A cold file that has gone is a miss: the index looks again, and what is left is tried.
#include "store/thaw.hpp"

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "store/cold_files.hpp"
#include "store/cold_tier.hpp"
#include "store/lookup.hpp"
#include "store/session_paths.hpp"
#include "store/walk.hpp"

namespace esker::detail {

namespace {

constexpr int most_rounds = 16;  // each ends with something that is not tried again

/// Where the rows of a cold block go.
struct ThawStep {
  ColdPlace place;
  std::uint32_t first_token = 0;  ///< of the reservation
};

enum class Outcome : std::uint8_t { done, again, stopped };

/// Decodes the chunks that some cold blocks need, and writes their rows into a reservation.
class RowMover {
 public:
  RowMover(Core& core, ReservationBody& body, const std::atomic<bool>* stop)
      : core_(core), body_(body), stop_(stop) {}

  /// `steps` are in the order of files and spans.
  Result<Outcome> move(std::span<const ThawStep> steps) {
    while (!steps.empty()) {
      const ColdPlace& first = steps.front().place;
      std::size_t count = 1;
      while (count < steps.size() && steps[count].place.file == first.file &&
             span_of(steps[count]) == span_of(steps.front())) {
        ++count;
      }
      auto outcome = move_span(steps.first(count));
      if (!outcome || *outcome != Outcome::done) return outcome;
      steps = steps.subspan(count);
    }
    return Outcome::done;
  }

 private:
  static std::uint32_t span_of(const ThawStep& step) {
    return step.place.file->nodes()[step.place.node].span;
  }

  Result<Outcome> move_span(std::span<const ThawStep> steps) {
    const ColdFile& file = *steps.front().place.file;
    const auto directory = core_.cold->index.directory();
    auto reader = file.reader(*directory, core_.superblock);
    if (!reader) return judge(reader.error(), steps);
    touch_cold(*directory, file.name());
    const SpanPlace& span = file.spans()[span_of(steps.front())];
    for (const ChunkPlace& chunk : span.chunks) {
      if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) return Outcome::stopped;
      const auto needed = steps_in(chunk, steps);
      if (needed.empty()) continue;
      const std::uint32_t row_bytes = core_.segments.layout().planes()[chunk.plane].row_bytes;
      rows_.resize(std::size_t{chunk.rows} * row_bytes);
      if (auto read = reader->chunk_at(span, chunk, rows_, memory_); !read) {
        return judge(read.error(), needed);
      }
      for (const ThawStep& step : needed) {
        if (auto done = write(step, chunk, row_bytes); !done) return failure_of(done);
      }
    }
    return Outcome::done;
  }

  /// Damage, and files that have gone, are no errors of whoever wants the rows.
  Result<Outcome> judge(const Error& error, std::span<const ThawStep> steps) {
    const bool of_the_moment = error.code == Errc::io && error.os_error != EIO;
    if (of_the_moment || error.code == Errc::no_memory) return tl::make_unexpected(error);
    if (error.code == Errc::missing) {
      core_.cold->index.look_again();
    } else {
      core_.event(EventKind::cold_damaged, 0, error.os_error, steps.front().place.file->name());
    }
    for (const ThawStep& step : steps) step.place.file->condemn(step.place.node);
    return Outcome::again;
  }

  /// Steps are sorted by their rows.
  static std::span<const ThawStep> steps_in(const ChunkPlace& chunk,
                                            std::span<const ThawStep> steps) {
    const auto node_of = [](const ThawStep& step) -> const ColdNode& {
      return step.place.file->nodes()[step.place.node];
    };
    const std::uint32_t end = chunk.first_row + chunk.rows;
    const auto first = std::find_if(steps.begin(), steps.end(), [&](const ThawStep& step) {
      return node_of(step).first_row + node_of(step).tokens > chunk.first_row;
    });
    const auto last = std::find_if(
        first, steps.end(), [&](const ThawStep& step) { return node_of(step).first_row >= end; });
    return {first, last};
  }

  Result<void> write(const ThawStep& step, const ChunkPlace& chunk, std::uint32_t row_bytes) {
    const ColdNode& node = step.place.file->nodes()[step.place.node];
    const std::uint32_t begin = std::max(node.first_row, chunk.first_row);
    const std::uint32_t end = std::min(node.first_row + node.tokens, chunk.first_row + chunk.rows);
    const auto rows = std::span(rows_).subspan(std::size_t{begin - chunk.first_row} * row_bytes,
                                               std::size_t{end - begin} * row_bytes);
    return write_rows(core_, body_, chunk.plane, step.first_token + (begin - node.first_row), rows);
  }

  Core& core_;
  ReservationBody& body_;
  const std::atomic<bool>* stop_;
  std::vector<std::byte> rows_;
  CodecMemory memory_;
};

/// A reservation that is given back unless it was published.
class Room {
 public:
  Room(Core& core, std::unique_ptr<ReservationBody> body) : core_(core), body_(std::move(body)) {}
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room() { abandon(core_, *body_); }
  [[nodiscard]] ReservationBody& body() noexcept { return *body_; }

  Result<void> publish_all() {
    auto path = publish(core_, *body_);
    if (!path) return failure_of(path);
    const auto stored =
        std::count_if(body_->blocks.begin(), body_->blocks.end(),
                      [](const PinnedBlock& block) { return block.generation == 0; });
    core_.count(Counter::thawed_blocks, static_cast<std::uint64_t>(stored));
    unpin_all(core_, **path);
    core_.bodies.give(*path);
    return {};
  }

 private:
  Core& core_;
  std::unique_ptr<ReservationBody> body_;
};

/// Steps whose rows are really missing, sorted as they lie in the files.
std::vector<ThawStep> sorted_steps(std::vector<ThawStep> steps, TokenRange missing) {
  std::erase_if(steps, [&](const ThawStep& step) {
    const std::uint32_t tokens = step.place.file->nodes()[step.place.node].tokens;
    return step.first_token + tokens <= missing.begin || step.first_token >= missing.end;
  });
  std::stable_sort(steps.begin(), steps.end(), [](const ThawStep& a, const ThawStep& b) {
    return std::tie(a.place.file->name(), a.place.node) <
           std::tie(b.place.file->name(), b.place.node);
  });
  return steps;
}

Result<Outcome> store_steps(Core& core, Result<std::unique_ptr<ReservationBody>> reserved,
                            std::vector<ThawStep> steps, const std::atomic<bool>* stop) {
  if (!reserved) return failure_of(reserved);
  Room room(core, std::move(*reserved));
  ReservationBody& body = room.body();
  if (body.blocks.empty()) return Outcome::done;
  const std::uint64_t stored = std::uint64_t{body.path.blocks.size()} * core.block_tokens();
  // What stood before it has been evicted since the plan was made.
  if (stored < steps.front().first_token && body.keys.empty()) return Outcome::again;
  RowMover mover(core, body, stop);
  auto moved = mover.move(sorted_steps(std::move(steps), {body.missing_begin, body.missing_end}));
  if (!moved || *moved != Outcome::done) return moved;
  if (auto published = room.publish_all(); !published) return failure_of(published);
  return Outcome::done;
}

/// How much of these tokens is in the segments; exact: true when the last block ends with them.
std::uint32_t stored_tokens(Core& core, Tokens tokens, std::string_view name_space) {
  return PinnedPath(core, tokens, name_space).tokens();
}

/// What continues the part of these tokens that is in the segments.
ColdPath plan(Core& core, Tokens tokens, std::string_view name_space) {
  if (core.cold == nullptr) return {};
  const auto view = core.cold->index.view(core);
  if (view->files.empty()) return {};
  const std::uint32_t hot = stored_tokens(core, tokens, name_space);
  if (hot >= tokens.size()) return {};
  const std::uint32_t whole = hot / core.block_tokens();
  ColdPath path = find_cold_path(core, *view, tokens, name_space, whole, hot);
  // A last block that shares only a few tokens may be there already, and be hard to find.
  const bool there =
      !path.empty() && stored_tokens(core, path.tokens, name_space) == path.tokens.size();
  return there ? ColdPath{} : std::move(path);
}

Result<Outcome> thaw_round(Core& core, Tokens tokens, std::string_view name_space,
                           const std::atomic<bool>* stop) {
  const ColdPath path = plan(core, tokens, name_space);
  if (path.empty()) return Outcome::done;
  std::vector<ThawStep> steps;
  std::uint32_t block = path.first_block;
  for (const ColdPlace& place : path.places) {
    steps.push_back({place, block++ * core.block_tokens()});
  }
  return store_steps(core, reserve(core, path.tokens, name_space), std::move(steps), stop);
}

bool may_thaw(const Core& core) noexcept {
  return core.cold != nullptr && core.options.access == Access::write;
}

}  // namespace

Result<std::uint32_t> thaw(Core& core, Tokens tokens, std::string_view name_space,
                           const std::atomic<bool>* stop) {
  if (auto ok = check_namespace(name_space); !ok) return failure_of(ok);
  if (tokens.size() > INT32_MAX) {
    return fail(Errc::invalid, "tokens: their number is " + std::to_string(tokens.size()) +
                                   ", allowed is at most 2^31 - 1");
  }
  for (int round = 0; round < most_rounds; ++round) {
    auto outcome = thaw_round(core, tokens, name_space, stop);
    if (!outcome) return failure_of(outcome);
    if (*outcome != Outcome::again) break;
  }
  return stored_tokens(core, tokens, name_space);
}

bool can_thaw(Core& core, Tokens tokens, std::string_view name_space) {
  if (!may_thaw(core) || name_space.size() > max_namespace_bytes || tokens.size() > INT32_MAX) {
    return false;
  }
  return !plan(core, tokens, name_space).empty();
}

bool thaw_missing(Core& core, Tokens tokens, std::string_view name_space,
                  std::uint32_t hot_tokens) noexcept {
  if (!may_thaw(core) || hot_tokens >= tokens.size()) return false;
  auto stored = guarded([&] { return thaw(core, tokens, name_space); });
  return stored && *stored > hot_tokens;
}

bool thaw_missing_keys(Core& core, std::span<const std::string_view> keys,
                       std::string_view name_space) noexcept {
  if (!may_thaw(core) || name_space.size() > max_namespace_bytes) return false;
  auto thawed = guarded([&]() -> Result<Outcome> {
    const auto view = core.cold->index.view(core);
    if (view->files.empty()) return Outcome::stopped;
    std::vector<std::string_view> wanted;
    std::vector<ThawStep> steps;
    for (const std::string_view key : keys) {
      bool found = false;
      static_cast<void>(match_keys(core, std::span(&key, 1), std::span(&found, 1), name_space));
      if (found) continue;
      ColdPlace place = find_cold_key(core, *view, key, name_space);
      if (!place) continue;
      const auto page = static_cast<std::uint32_t>(wanted.size());
      wanted.push_back(key);
      steps.push_back({std::move(place), page * core.block_tokens()});
    }
    if (wanted.empty()) return Outcome::stopped;
    return store_steps(core, reserve_keys(core, wanted, name_space), std::move(steps), nullptr);
  });
  return thawed && *thawed == Outcome::done;
}

}  // namespace esker::detail
