// Invariants
// 1. What is reusable is pinned, or private to this handle: it stays so until the session drops it.
// 2. The file of a session is written whole or not at all; until `save` only this handle knows of
//    what was appended.
#include <esker/session.hpp>
#include <esker/store.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"
#include "format/session_file.hpp"
#include "session/session_state.hpp"
#include "store/kept.hpp"
#include "store/lookup.hpp"
#include "store/session_paths.hpp"

namespace esker {

using detail::fail;
using detail::failure_of;
using detail::guarded;

namespace {

/// A file that was damaged meanwhile is ours to replace.
Result<void> still_ours(const detail::SessionState& state) {
  auto files = detail::session_files(state.core(), false);
  if (!files) return failure_of(files);
  auto now = detail::read_own(*files, state);
  if (!now && now.error().code != Errc::corrupt) return failure_of(now);
  return {};
}

/// Publishes the rows of the private tail as a partial block.
Result<void> publish_tail(detail::SessionState& state) {
  detail::Core& core = state.core();
  const std::shared_ptr<detail::Sequence>& sequence = state.sequence;
  if (sequence->tail_rows == 0) return {};
  // Asked without the lock: a session that was removed publishes nothing any more.
  if (auto ours = still_ours(state); !ours) return ours;
  auto body = detail::reserve_for(sequence, sequence->tokens);
  if (!body) return failure_of(body);
  if ((*body)->missing_begin < sequence->tokens.size()) {
    // A block below the tail is damaged, or there is no room to store it again: what is left is
    // found again, the rest is asked for by the next append.
    detail::abandon(core, **body);
    sequence->drop_tail();
    sequence->hold(detail::lookup(core, sequence->tokens, sequence->name_space));
    return {};
  }
  (*body)->publishes_tail = true;
  auto path = guarded([&] { return detail::publish(core, **body); });
  detail::abandon(core, **body);
  if (!path) return failure_of(path);
  detail::unpin_all(core, **path);
  core.bodies.give(*path);
  return {};
}

/// A chat that goes on is not over.
void note_use(const detail::SessionState& state) {
  if (auto files = detail::session_files(state.core(), false)) files->touch(state.record.name);
}

/// What others may find of dropped tokens goes when the session goes.
void remember_dropped(detail::SessionRecord& record, std::uint64_t path) {
  std::vector<std::uint64_t>& dropped = record.dropped_paths;
  std::erase(dropped, path);
  if (dropped.size() == detail::max_dropped_paths) dropped.erase(dropped.begin());
  dropped.push_back(path);
}

/// The partial block in which the session ended before may stand beside the longer one that has
/// taken its place.
void remember_old_end(detail::SessionState& state, Tokens before) {
  detail::Core& core = state.core();
  if (before.size() % core.block_tokens() == 0 || before.size() >= state.sequence->tokens.size()) {
    return;
  }
  const std::string& name_space = state.record.name_space;
  if (!detail::partial_end_stands(core, before, name_space)) return;
  remember_dropped(state.record, detail::sequence_hash(core, before, name_space));
}

/// Marks what was added. Where something that was saved is no longer needed, all marks anew: a part
/// that was dropped, or a partial block that a longer one has taken the place of.
void keep_what_is_saved(detail::SessionState& state, Tokens before) {
  detail::Core& core = state.core();
  const Tokens now = state.sequence->tokens;
  const bool grown = before.size() % core.block_tokens() == 0 && before.size() <= now.size() &&
                     std::equal(before.begin(), before.end(), now.begin());
  if (const detail::PrefixBody* path = state.sequence->path(); grown && path != nullptr) {
    detail::keep_path(core, *path, state.record.keep_max_bytes);
  } else {
    detail::mark_kept(core);
  }
}

/// A kept session grows only as far as all of it can be kept.
Result<void> check_growth(const detail::SessionState& state, std::size_t tokens) {
  if (!state.record.kept) return {};
  const detail::Core& core = state.core();
  const std::uint64_t blocks = detail::div_ceil(tokens, core.block_tokens());
  const detail::PrefixBody* path = state.sequence->path();
  const std::uint64_t kept =
      path == nullptr ? 0 : path->blocks.size() - detail::not_kept(core, *path);
  return detail::check_keep_room(state, blocks > kept ? blocks - kept : 0,
                                 state.record.keep_max_bytes);
}

}  // namespace

Session::Session(std::shared_ptr<detail::SessionState> state) noexcept : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const std::string& Session::name() const noexcept {
  static const std::string none;
  return state_ == nullptr ? none : state_->record.name;
}

std::uint32_t Session::tokens() const noexcept {
  return static_cast<std::uint32_t>(token_ids().size());
}

Tokens Session::token_ids() const noexcept {
  return state_ == nullptr ? Tokens{} : Tokens(state_->sequence->tokens);
}

std::uint32_t Session::reusable() const noexcept {
  return state_ == nullptr ? 0 : state_->sequence->reusable();
}

const Prefix& Session::prefix() const noexcept {
  static const Prefix none;
  return state_ == nullptr ? none : state_->sequence->stored;
}

const Geometry& Session::geometry() const noexcept {
  static const Geometry none;
  return state_ == nullptr ? none : state_->core().superblock.geometry;
}

const ModelId& Session::model() const noexcept {
  static const ModelId none;
  return state_ == nullptr ? none : state_->core().superblock.model;
}

Result<Reservation> Session::append(Tokens tokens) {
  return guarded([&]() -> Result<Reservation> {
    if (auto ok = detail::ready_to_change(state_); !ok) return failure_of(ok);
    std::vector<std::int32_t> all = state_->sequence->tokens;
    all.insert(all.end(), tokens.begin(), tokens.end());
    if (auto room = check_growth(*state_, all.size()); !room) return failure_of(room);
    auto body = detail::reserve_for(state_->sequence, all);
    if (!body) return failure_of(body);
    if (state_->record.time_to_live_s != 0) note_use(*state_);
    return Reservation(state_->sequence->core, body->release());
  });
}

Result<void> Session::truncate(std::uint32_t tokens) {
  if (auto ok = detail::ready_to_change(state_); !ok) return ok;
  return guarded([&]() -> Result<void> {
    const Prefix& stored = state_->sequence->stored;
    if (tokens < stored.tokens()) remember_dropped(state_->record, stored.path());
    state_->sequence->truncate(tokens);
    return {};
  });
}

Result<void> Session::save() {
  return guarded([&]() -> Result<void> {
    if (auto ok = detail::ready_to_change(state_); !ok) return ok;
    if (auto published = publish_tail(*state_); !published) return published;
    auto locked = detail::lock_session_files(state_->core());
    if (!locked) return failure_of(locked);
    auto now = detail::read_own(locked->files, *state_);
    // A file that was damaged meanwhile is replaced by what we know.
    if (!now && now.error().code != Errc::corrupt) return failure_of(now);
    const Tokens before = now ? Tokens(now->tokens) : Tokens{};
    remember_old_end(*state_, before);
    const detail::SessionRecord record = state_->record_to_write();
    if (auto done = detail::write_own(locked->files, *state_, record); !done) return done;
    if (record.kept) keep_what_is_saved(*state_, before);
    return {};
  });
}

Result<Runs> Session::view(std::uint32_t layer, Plane plane, TokenRange range) const noexcept {
  return guarded([&]() -> Result<Runs> {
    if (auto ok = detail::ready_to_look(state_); !ok) return failure_of(ok);
    const detail::Sequence& sequence = *state_->sequence;
    const detail::Core& core = *sequence.core;
    const int index = core.segments.layout().plane_index(layer, plane);
    if (index < 0) {
      return fail(Errc::invalid, "layer " + std::to_string(layer) + " " +
                                     std::string(esker::name(plane)) +
                                     ": no such rows; the geometry has " +
                                     std::to_string(geometry().layers.size()) + " layers");
    }
    const std::uint32_t stored = sequence.stored.tokens();
    if (range.begin > range.end || range.begin > sequence.reusable()) {
      return fail(Errc::invalid, "tokens " + std::to_string(range.begin) + "…" +
                                     std::to_string(range.end) + ", allowed is a range within 0…" +
                                     std::to_string(sequence.reusable()));
    }
    range.end = std::min(range.end, sequence.reusable());
    Runs runs;
    if (range.begin < stored) {
      auto checked = sequence.stored.view(layer, plane, {range.begin, std::min(range.end, stored)});
      if (!checked) return checked;
      runs = *checked;
    }
    runs.range_ = range;
    if (sequence.tail_rows > 0) {
      const auto at = static_cast<std::size_t>(index);
      const std::size_t bytes =
          std::size_t{sequence.tail_rows} * core.segments.layout().planes()[at].row_bytes;
      runs.last_ =
          Run{{stored, sequence.reusable()}, {core.segments.rows(sequence.tail.block, at), bytes}};
    }
    return runs;
  });
}

Result<void> Session::set(std::string_view key, std::string_view value) {
  return guarded([&]() -> Result<void> {
    if (auto ok = detail::ready_to_look(state_); !ok) return ok;
    if (key.empty()) return fail(Errc::invalid, "metadata: a key must not be empty");
    SessionMetadata changed = state_->record.metadata;
    if (value.empty()) {
      changed.erase(std::string(key));
    } else {
      changed.insert_or_assign(std::string(key), std::string(value));
    }
    if (auto ok = detail::check_metadata(changed); !ok) return ok;
    state_->record.metadata = std::move(changed);
    return {};
  });
}

void Session::set_priority(std::int32_t priority) noexcept {
  if (state_ != nullptr) state_->record.priority = priority;
}

void Session::set_time_to_live(std::uint64_t seconds) noexcept {
  if (state_ != nullptr) state_->record.time_to_live_s = seconds;
}

Result<SessionInfo> Session::info() const {
  return guarded([&]() -> Result<SessionInfo> {
    if (auto ok = detail::ready_to_look(state_); !ok) return failure_of(ok);
    detail::Core& core = state_->core();
    auto files = detail::session_files(core, false);
    if (!files) return failure_of(files);
    detail::SessionRecord record = state_->record;
    // Its files may be gone or damaged by now; what this handle holds is not.
    if (auto filed = files->read(record.name)) {
      record.used_unix_ns = filed->used_unix_ns;
      record.file_bytes = filed->file_bytes;
    }
    SessionInfo info = detail::info_of(record);
    info.tokens = tokens();
    info.reusable_tokens = reusable();
    info.path = prefix().path();
    if (const detail::PrefixBody* path = state_->sequence->path()) {
      info.kept_tokens = detail::kept_tokens(core, *path);
    }
    detail::describe_attachments(core, *files, token_ids().first(reusable()), info);
    return info;
  });
}

}  // namespace esker
