// Invariants
// 1. A name is taken, given up or moved under the SESSIONS lock, after everything was checked.
// 2. Blocks go before the files that name them: killed in between, a session is less reusable, and
//    can be removed again.
#include <esker/session.hpp>
#include <esker/store.hpp>
#include <set>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"
#include "session/session_state.hpp"
#include "store/house.hpp"
#include "store/kept.hpp"
#include "store/lookup.hpp"
#include "store/session_paths.hpp"

namespace esker {

using detail::fail;
using detail::failure_of;
using detail::guarded;

namespace {

Result<void> usable(const std::shared_ptr<detail::Core>& core, bool for_writing) {
  if (core == nullptr) return fail(Errc::invalid, "this Store was moved from");
  return core->usable(for_writing);
}

detail::Failure no_session(const detail::Core& core, std::string_view name) {
  return fail(Errc::missing, core.directory.path() + ": there is no session \"" +
                                 std::string(name) + "\"; see `esker session ls`");
}

Result<void> refuse_taken(const detail::SessionFiles& files, std::string_view name) {
  if (!files.has(name)) return {};
  return fail(Errc::invalid, "session \"" + std::string(name) +
                                 "\" exists already; resume it, remove it, or choose another name");
}

/// A session, or a file that is listed among them though no name of a session leads to it.
bool listed(const detail::SessionFiles& files, const std::string& name) {
  if (files.has(name)) return true;
  auto now = files.names();
  return now && std::find(now->begin(), now->end(), name) != now->end();
}

/// The session that goes on under a new name: what is written of it.
detail::SessionRecord branch_of(const detail::SessionState& parent, std::string_view name) {
  detail::SessionRecord child = parent.record;
  child.name = name;
  child.tokens = parent.sequence->tokens;
  child.created_unix_ns = detail::unix_ns();
  child.revision = 1;
  child.kept = false;
  child.keep_max_bytes = 0;
  child.dropped_paths.clear();
  return child;
}

/// The tokens on file are ours up to their end.
bool begins_with(Tokens all, Tokens beginning) {
  return beginning.size() <= all.size() &&
         std::equal(beginning.begin(), beginning.end(), all.begin());
}

/// Copies what of the engine's state belongs to tokens that the child has.
Result<void> copy_attachments(const detail::SessionFiles& files, const std::string& from,
                              const detail::SessionRecord& child) {
  auto attachments = files.attachments(from);
  if (!attachments) return failure_of(attachments);
  for (const auto& [record, damage] : *attachments) {
    if (!damage.empty() || record.position > child.tokens.size()) continue;
    auto state = files.state(from, record.label);
    if (!state) continue;
    if (auto done = files.attach(child.name, state->record, state->bytes); !done) return done;
  }
  return {};
}

/// Writes the child's files. They share the parent's token file where that one is ours and was not
/// truncated since: a branch never takes anything from what is saved.
Result<void> write_branch(const detail::SessionFiles& files, detail::SessionState& parent,
                          const detail::SessionRecord& child) {
  auto filed = detail::read_own(files, parent);
  if (filed && begins_with(child.tokens, filed->tokens)) {
    if (filed->tokens.size() < child.tokens.size()) {
      // So that all branches share the tokens that were not saved yet.
      filed->tokens = child.tokens;
      ++filed->revision;
      if (auto done = detail::write_own(files, parent, *filed); !done) return done;
      if (filed->kept) detail::mark_kept(parent.core());
    }
    return files.write_fork(parent.record.name, child);
  }
  if (auto done = files.write(child); !done) return done;
  // Under the parent's name there may be nothing now, or another session.
  if (!filed && filed.error().code == Errc::missing) return {};
  auto copied = copy_attachments(files, parent.record.name, child);
  if (!copied) static_cast<void>(files.remove(child.name));
  return copied;
}

}  // namespace

Result<Session> Session::create(Store& store, std::string_view name,
                                const SessionOptions& options) {
  return guarded([&]() -> Result<Session> {
    if (auto ok = usable(store.core_, true); !ok) return failure_of(ok);
    if (auto ok = detail::check_session_name(name); !ok) return failure_of(ok);
    if (auto ok = detail::check_namespace(options.name_space); !ok) return failure_of(ok);
    if (auto ok = detail::check_metadata(options.metadata); !ok) return failure_of(ok);
    auto locked = detail::lock_session_files(*store.core_);
    if (!locked) return failure_of(locked);
    if (auto ok = refuse_taken(locked->files, name); !ok) return failure_of(ok);
    detail::SessionRecord record;
    record.name = name;
    record.name_space = options.name_space;
    record.metadata = options.metadata;
    record.priority = options.priority;
    record.time_to_live_s = options.time_to_live_s;
    record.created_unix_ns = detail::unix_ns();
    record.revision = 1;
    if (auto done = locked->files.write(record); !done) return failure_of(done);
    return Session(std::make_shared<detail::SessionState>(store.core_, std::move(record)));
  });
}

Result<Session> Session::resume(Store& store, std::string_view name) {
  return guarded([&]() -> Result<Session> {
    if (auto ok = usable(store.core_, false); !ok) return failure_of(ok);
    detail::Core& core = *store.core_;
    auto files = detail::session_files(core, false);
    if (!files) return failure_of(files);
    if (!files->has(name)) return no_session(core, name);
    auto record = files->read(name);
    if (!record) return failure_of(record);
    if (record->expired(detail::unix_ns())) {
      return fail(Errc::missing, core.directory.path() + ": the time to live of session \"" +
                                     std::string(name) +
                                     "\" is over; remove it with `esker "
                                     "session rm`");
    }
    auto state = std::make_shared<detail::SessionState>(store.core_, std::move(*record));
    detail::Sequence& sequence = *state->sequence;
    sequence.hold(detail::lookup(core, sequence.tokens, sequence.name_space));
    if (core.options.access != Access::inspect) files->touch(name);
    return Session(std::move(state));
  });
}

Result<std::vector<SessionInfo>> Session::list(const Store& store) {
  return guarded([&]() -> Result<std::vector<SessionInfo>> {
    if (auto ok = usable(store.core_, false); !ok) return failure_of(ok);
    auto files = detail::session_files(*store.core_, false);
    if (!files) return failure_of(files);
    auto names = files->names();
    if (!names) return failure_of(names);
    auto file_list = files->file_list();
    if (!file_list) return failure_of(file_list);
    std::vector<SessionInfo> all;
    for (const std::string& name : *names) {
      // One that was removed since is no damage.
      if (!listed(*files, name)) continue;
      all.push_back(detail::describe_session(*store.core_, *files, name, &*file_list));
    }
    return all;
  });
}

Result<SessionInfo> Session::describe(const Store& store, std::string_view name) {
  return guarded([&]() -> Result<SessionInfo> {
    if (auto ok = usable(store.core_, false); !ok) return failure_of(ok);
    auto files = detail::session_files(*store.core_, false);
    if (!files) return failure_of(files);
    if (!listed(*files, std::string(name))) return no_session(*store.core_, name);
    SessionInfo info = detail::describe_session(*store.core_, *files, std::string(name));
    for (AttachmentInfo& attachment : info.attachments) {
      if (!attachment.damage.empty()) continue;
      auto state = files->state(name, attachment.label);
      if (state) continue;
      attachment.damage = std::move(state).error().message;
      attachment.available = false;
    }
    return info;
  });
}

namespace {

/// The sessions that go, and those that stay. One that cannot be read just now stops it all: its
/// blocks would be taken from it, or forgotten.
Result<void> sort_out(const detail::SessionFiles& files, std::span<const std::string> names,
                      std::vector<detail::SessionRecord>& gone,
                      std::vector<detail::SessionRecord>& staying) {
  auto all = files.names();
  if (!all) return failure_of(all);
  for (const std::string& name : *all) {
    const bool named = std::find(names.begin(), names.end(), name) != names.end();
    auto record = files.read(name);
    if (!record) {
      // Nobody can resume a damaged one, but a newer Esker can read a session of a newer format.
      const bool newer = record.error().code == Errc::incompatible && !named;
      if (newer || !detail::lasting(record.error())) return failure_of(record);
      continue;
    }
    (named ? gone : staying).push_back(std::move(*record));
  }
  return {};
}

Result<Freed> remove_sessions(detail::Core& core, const detail::SessionFiles& files,
                              std::span<const std::string> names, bool dry_run) {
  for (const std::string& name : names) {
    if (!listed(files, name)) return no_session(core, name);
  }
  std::vector<detail::SessionRecord> gone;
  std::vector<detail::SessionRecord> staying;
  if (auto sorted = sort_out(files, names, gone, staying); !sorted) return failure_of(sorted);
  auto freed = detail::remove_sequences(core, gone, staying, dry_run);
  const std::set<std::string> distinct(names.begin(), names.end());
  if (freed) freed->paths = distinct.size();
  if (!freed || dry_run) return freed;
  for (const std::string& name : distinct) {
    if (auto done = files.remove(name); !done) return failure_of(done);
  }
  files.sweep();
  detail::mark_kept(core);
  return freed;
}

}  // namespace

Result<Freed> Session::remove(Store& store, std::span<const std::string> names, bool dry_run) {
  return guarded([&]() -> Result<Freed> {
    if (auto ok = usable(store.core_, !dry_run); !ok) return failure_of(ok);
    detail::Core& core = *store.core_;
    if (dry_run) {
      auto files = detail::session_files(core, false);
      if (!files) return failure_of(files);
      return remove_sessions(core, *files, names, true);
    }
    auto locked = detail::lock_session_files(core);
    if (!locked) return failure_of(locked);
    return remove_sessions(core, locked->files, names, false);
  });
}

Result<Session> Session::fork(std::string_view name) {
  return guarded([&]() -> Result<Session> {
    if (auto ok = detail::ready_to_change(state_); !ok) return failure_of(ok);
    if (auto ok = detail::check_session_name(name); !ok) return failure_of(ok);
    auto locked = detail::lock_session_files(state_->core());
    if (!locked) return failure_of(locked);
    if (auto ok = refuse_taken(locked->files, name); !ok) return failure_of(ok);
    detail::SessionRecord child = branch_of(*state_, name);
    if (auto done = write_branch(locked->files, *state_, child); !done) return failure_of(done);
    auto state = std::make_shared<detail::SessionState>(state_->sequence->core, std::move(child));
    detail::Sequence& branch = *state->sequence;
    if (const detail::PrefixBody* path = state_->sequence->path()) {
      branch.hold(detail::clone_path(state_->core(), *path));
    }
    // Without a block for its tail the branch is a little less reusable.
    if (branch.stored.tokens() == prefix().tokens()) {
      static_cast<void>(detail::copy_tail(*state_->sequence, branch));
    }
    return Session(std::move(state));
  });
}

Result<void> Session::rename(std::string_view name) {
  return guarded([&]() -> Result<void> {
    if (auto ok = detail::ready_to_change(state_); !ok) return ok;
    if (auto ok = detail::check_session_name(name); !ok) return ok;
    auto locked = detail::lock_session_files(state_->core());
    if (!locked) return failure_of(locked);
    if (auto ok = refuse_taken(locked->files, name); !ok) return ok;
    auto filed = detail::read_own(locked->files, *state_);
    if (!filed) return failure_of(filed);
    if (auto done = locked->files.rename(state_->record.name, name); !done) return done;
    state_->record.name = name;
    if (auto moved = locked->files.read(name)) state_->record.revision = moved->revision;
    return {};
  });
}

}  // namespace esker
