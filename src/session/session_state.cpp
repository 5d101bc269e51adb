// Invariants
// 1. Session files change only under the SESSIONS lock, and a session is written only over the
//    revision that the writer has read: nobody's turn of a chat is lost silently.
// 2. Describing a session pins and stamps nothing.
#include "session/session_state.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "store/kept.hpp"
#include "store/session_paths.hpp"

namespace esker::detail {

namespace {

constexpr std::uint32_t lock_deadline_ms = 5000;

std::uint64_t path_name(const Core& core, const PrefixBody& path) noexcept {
  return reinterpret_cast<const BlockHeader*>(core.segments.header(path.blocks.back().block))
      ->chain_hash;
}

}  // namespace

SessionState::SessionState(std::shared_ptr<Core> core, SessionRecord from)
    : sequence(std::make_shared<Sequence>(std::move(core))), record(std::move(from)) {
  sequence->tokens = std::exchange(record.tokens, {});
  sequence->name_space = record.name_space;
}

Result<void> ready_to_look(const std::shared_ptr<SessionState>& state) {
  if (state == nullptr) return fail(Errc::invalid, "this Session was moved from");
  return state->core().usable(false);
}

Result<void> ready_to_change(const std::shared_ptr<SessionState>& state) {
  if (auto ok = ready_to_look(state); !ok) return ok;
  if (auto ok = state->core().usable(true); !ok) return ok;
  if (!state->sequence->lent) return {};
  return fail(Errc::invalid, "session \"" + state->record.name +
                                 "\": a reservation from `append` is still open; publish it or "
                                 "let it go first");
}

SessionRecord SessionState::record_to_write() const {
  SessionRecord full = record;
  full.tokens = sequence->tokens;
  ++full.revision;
  return full;
}

Result<void> check_keep_room(const SessionState& state, std::uint64_t more,
                             std::uint64_t max_bytes) {
  const Core& core = state.core();
  const std::uint64_t kept = kept_blocks(core);
  const std::uint64_t block_bytes = core.superblock.geometry.block_bytes();
  const std::uint64_t limit = keep_limit(core, max_bytes);
  if ((kept + more) * block_bytes <= limit) return {};
  if (kept * block_bytes > limit) {
    return fail(Errc::full, "session \"" + state.record.name +
                                "\": " + size_text(kept * block_bytes) +
                                " are kept already, and the limit of " + size_text(limit) +
                                " is below that; give a higher one, or let a kept session go");
  }
  return fail(Errc::full, "session \"" + state.record.name + "\": keeping it takes " +
                              size_text(more * block_bytes) + " more, " +
                              size_text(kept * block_bytes) + " are kept already, and at most " +
                              size_text(limit) +
                              " may be; raise the limit with keep, or let a kept session go");
}

Result<LockedFiles> lock_session_files(const Core& core) {
  auto lock = LockFile::open(core.directory, core.superblock.sharing);
  if (!lock) return tl::make_unexpected(std::move(lock).error());
  if (!lock->lock(lock_bytes::sessions, lock_deadline_ms)) {
    return fail(Errc::busy, core.directory.path() +
                                "/lock: another process has been changing sessions for more than " +
                                std::to_string(lock_deadline_ms) +
                                " ms; if it is stopped, continue or end it");
  }
  auto files = session_files(core, true);
  if (!files) return tl::make_unexpected(std::move(files).error());
  return LockedFiles{std::move(*lock), std::move(*files)};
}

Result<SessionRecord> read_own(const SessionFiles& files, const SessionState& state) {
  auto now = files.read(state.record.name);
  // Under this name there may be another session by now, with any revision.
  const bool gone = now ? now->created_unix_ns != state.record.created_unix_ns
                        : now.error().code == Errc::missing;
  if (gone) {
    return fail(Errc::missing, "session \"" + state.record.name +
                                   "\" was removed or renamed meanwhile; fork this one under "
                                   "another name to keep it");
  }
  if (now && now->revision != state.record.revision) {
    return fail(Errc::busy, "session \"" + state.record.name +
                                "\": another handle has saved it since (revision " +
                                std::to_string(now->revision) + ", ours is " +
                                std::to_string(state.record.revision) +
                                "); resume it again, or fork this one under another name");
  }
  return now;
}

Result<void> write_own(const SessionFiles& files, SessionState& state,
                       const SessionRecord& record) {
  auto written = files.write(record);
  if (!written) {
    const auto now = files.read(record.name);
    const bool in_place =
        now && now->revision == record.revision && now->created_unix_ns == record.created_unix_ns;
    if (!in_place) return written;
  }
  state.record.revision = record.revision;
  return written;
}

SessionInfo info_of(const SessionRecord& record) {
  SessionInfo info;
  info.name = record.name;
  info.name_space = record.name_space;
  info.tokens = static_cast<std::uint32_t>(record.tokens.size());
  info.kept = record.kept;
  info.keep_max_bytes = record.keep_max_bytes;
  info.priority = record.priority;
  info.time_to_live_s = record.time_to_live_s;
  info.created_unix_ns = record.created_unix_ns;
  info.used_unix_ns = record.used_unix_ns;
  info.revision = record.revision;
  info.file_bytes = record.file_bytes;
  info.expired = record.expired(unix_ns());
  info.metadata = record.metadata;
  return info;
}

void describe_attachments(const Core& core, const SessionFiles& files, Tokens reusable,
                          SessionInfo& info, const std::vector<std::string>* file_list) {
  auto attachments = files.attachments(info.name, file_list);
  if (!attachments) return;
  for (auto& [record, damage] : *attachments) {
    AttachmentInfo attachment{std::move(record.label), record.position, record.bytes, false,
                              std::move(damage)};
    attachment.available =
        attachment.damage.empty() && record.position <= reusable.size() &&
        record.path_hash == sequence_hash(core, reusable.first(record.position), info.name_space);
    info.file_bytes += attachment.bytes;
    info.attachments.push_back(std::move(attachment));
  }
}

SessionInfo describe_session(Core& core, const SessionFiles& files, const std::string& name,
                             const std::vector<std::string>* file_list) {
  auto record = files.read(name);
  if (!record) {
    SessionInfo damaged;
    damaged.name = name;
    damaged.damage = std::move(record).error().message;
    return damaged;
  }
  SessionInfo info = info_of(*record);
  const PinnedPath path(core, record->tokens, record->name_space);
  if (path) {
    info.reusable_tokens = path->tokens;
    info.kept_tokens = kept_tokens(core, *path);
    info.path = path_name(core, *path);
  }
  const Tokens reusable = Tokens(record->tokens).first(path.tokens());
  describe_attachments(core, files, reusable, info, file_list);
  return info;
}

}  // namespace esker::detail
