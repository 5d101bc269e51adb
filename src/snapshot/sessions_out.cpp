// Invariants
// 1. Reading sessions needs no lock: their files only appear whole.
// 2. A state leaves the store only with exactly the tokens that it was attached to.
#include "snapshot/sessions_out.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "snapshot/stored_trie.hpp"
#include "store/session_paths.hpp"

namespace esker::detail {

namespace {

Result<SessionRecord> named_session(const Core& core, const SessionFiles& files,
                                    const std::string& name) {
  auto record = files.read(name);
  if (!record && record.error().code == Errc::missing) {
    return fail(Errc::missing, core.directory.path() + ": there is no session \"" + name +
                                   "\"; see `esker session ls`");
  }
  if (record && record->expired(unix_ns())) {
    return fail(Errc::missing,
                core.directory.path() + ": the time to live of session \"" + name + "\" is over");
  }
  return record;
}

}  // namespace

Result<ChosenSessions> choose_sessions(const Core& core, const ExportOptions& options) {
  ChosenSessions chosen;
  auto files = session_files(core, false);
  if (!files) return failure_of(files);
  for (const std::string& name : options.sessions) {
    auto record = named_session(core, *files, name);
    if (!record) return failure_of(record);
    const auto same = [&](const SessionRecord& other) { return other.name == name; };
    const bool twice = std::any_of(chosen.records.begin(), chosen.records.end(), same);
    if (!twice) chosen.records.push_back(std::move(*record));
  }
  if (!wants_everything(options)) return chosen;
  auto names = files->names();
  if (!names) return failure_of(names);
  for (const std::string& name : *names) {
    auto record = files->read(name);
    if (!record) {
      if (!lasting(record.error())) return failure_of(record);
      chosen.damaged += record.error().code == Errc::missing ? 0 : 1;
    } else if (!record->expired(unix_ns())) {
      chosen.records.push_back(std::move(*record));
    }
  }
  return chosen;
}

ArchiveSession archived_session(const SessionRecord& record) {
  ArchiveSession session;
  session.name = record.name;
  session.tokens = record.tokens;
  session.metadata = record.metadata;
  session.priority = record.priority;
  session.time_to_live_s = record.time_to_live_s;
  session.created_unix_ns = record.created_unix_ns;
  session.used_unix_ns = record.used_unix_ns;
  session.kept = record.kept;
  session.keep_max_bytes = record.keep_max_bytes;
  return session;
}

Result<std::vector<ArchiveState>> states_of(const Core& core, const SessionRecord& record,
                                            bool& damaged) {
  std::vector<ArchiveState> states;
  auto files = session_files(core, false);
  if (!files) return failure_of(files);
  auto attachments = files->attachments(record.name);
  if (!attachments) return failure_of(attachments);
  for (const auto& [attachment, damage] : *attachments) {
    if (!damage.empty()) {
      damaged = true;
      continue;
    }
    if (attachment.position > record.tokens.size()) continue;
    const Tokens tokens = Tokens(record.tokens).first(attachment.position);
    if (attachment.path_hash != sequence_hash(core, tokens, record.name_space)) continue;
    auto state = files->state(record.name, attachment.label);
    if (!state && !lasting(state.error())) return failure_of(state);
    if (!state) {
      damaged = damaged || state.error().code != Errc::missing;
      continue;
    }
    // Replaced since it was listed, it may belong to other tokens.
    if (state->record.path_hash != attachment.path_hash) continue;
    states.push_back({attachment.label, attachment.position, std::move(state->bytes)});
  }
  return states;
}

}  // namespace esker::detail
