// Invariants
// 1. Session files change only under the SESSIONS lock. A session of the same name is replaced only
//    when that was asked for, and then at a higher revision, so that who has it open is told.
// 2. A state is attached to exactly the tokens that it came with, after they were written.
#include "snapshot/import_sessions.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "session/session_state.hpp"
#include "store/kept.hpp"
#include "store/session_paths.hpp"

namespace esker::detail {

namespace {

SessionRecord record_of(const ArchiveSession& session, const std::string& name_space) {
  SessionRecord record;
  record.name = session.name;
  record.name_space = name_space;
  record.tokens = session.tokens;
  record.metadata = session.metadata;
  record.priority = session.priority;
  record.time_to_live_s = session.time_to_live_s;
  record.created_unix_ns = session.created_unix_ns;
  record.revision = 1;
  record.kept = session.kept;
  record.keep_max_bytes = session.keep_max_bytes;
  return record;
}

/// Attaches what is not there yet; of a session that was just written that is all of it.
Result<void> attach_states(const Core& core, const SessionFiles& files, const SessionRecord& record,
                           const std::vector<ArchiveState>& states) {
  auto present = files.attachments(record.name);
  if (!present) return failure_of(present);
  for (const ArchiveState& state : states) {
    if (state.position > record.tokens.size()) continue;
    const Tokens tokens = Tokens(record.tokens).first(state.position);
    const AttachmentRecord attachment{state.label, state.position,
                                      sequence_hash(core, tokens, record.name_space),
                                      state.bytes.size()};
    const bool there = std::any_of(present->begin(), present->end(), [&](const auto& other) {
      return other.record.label == state.label && other.damage.empty();
    });
    if (there) continue;
    if (auto done = files.attach(record.name, attachment, state.bytes); !done) return done;
  }
  return {};
}

/// What an earlier session of the name has left must not look as if it belonged to the new one.
Result<void> detach_all(const SessionFiles& files, const std::string& name) {
  auto present = files.attachments(name);
  if (!present) return failure_of(present);
  for (const auto& [record, damage] : *present) {
    auto done = files.detach(name, record.label);
    if (!done && done.error().code != Errc::missing) return done;
  }
  return {};
}

}  // namespace

Result<void> SessionStorer::store(const SessionWithStates& found, const std::string& name_space) {
  auto locked = lock_session_files(core_);
  if (!locked) return failure_of(locked);
  SessionRecord record = record_of(found.session, name_space);
  auto present = locked->files.read(record.name);
  if (!present && !lasting(present.error())) return failure_of(present);
  if (!present && present.error().code == Errc::incompatible) return failure_of(present);
  if (present && present->tokens == record.tokens && present->name_space == record.name_space) {
    ++report_.present_sessions;
    // Who wrote it may have been killed before its blocks were marked.
    any_kept_ = any_kept_ || present->kept;
    return attach_states(core_, locked->files, *present, found.states);
  }
  const bool taken = present || present.error().code != Errc::missing;
  if (taken && !options_.replace_sessions) {
    report_.skipped_sessions.push_back(record.name);
    return {};
  }
  if (present) record.revision = present->revision + 1;
  if (auto done = locked->files.write(record); !done) return done;
  if (taken) {
    if (auto done = detach_all(locked->files, record.name); !done) return done;
  }
  any_kept_ = any_kept_ || record.kept || (present && present->kept);
  ++report_.sessions;
  return attach_states(core_, locked->files, record, found.states);
}

Result<void> SessionStorer::finish() {
  if (!any_kept_) return {};
  auto locked = lock_session_files(core_);
  if (!locked) return failure_of(locked);
  mark_kept(core_);
  return {};
}

}  // namespace esker::detail
