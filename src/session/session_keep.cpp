// Invariants
// 1. The file says that a session is kept before its blocks are marked, and says that it is not
//    before they are let go: killed in between, the next rebuild puts it right.
// 2. Engine state is given out only for exactly the tokens that it was attached to.
#include <esker/session.hpp>
#include <esker/store.hpp>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "session/session_state.hpp"
#include "store/kept.hpp"
#include "store/session_paths.hpp"

namespace esker {

using detail::fail;
using detail::failure_of;
using detail::guarded;

namespace {

/// Changes only whether the session is kept; tokens that were not saved stay unsaved.
Result<void> write_kept(detail::SessionState& state, const detail::SessionFiles& files, bool kept,
                        std::uint64_t max_bytes) {
  auto filed = detail::read_own(files, state);
  if (!filed) return failure_of(filed);
  filed->kept = kept;
  filed->keep_max_bytes = max_bytes;
  ++filed->revision;
  if (auto done = detail::write_own(files, state, *filed); !done) return done;
  state.record.kept = kept;
  state.record.keep_max_bytes = max_bytes;
  return {};
}

}  // namespace

Result<void> Session::keep(std::uint64_t max_bytes) {
  return guarded([&]() -> Result<void> {
    if (auto ok = detail::ready_to_change(state_); !ok) return ok;
    detail::Core& core = state_->core();
    auto locked = detail::lock_session_files(core);
    if (!locked) return failure_of(locked);
    const detail::PrefixBody* path = state_->sequence->path();
    const auto missing = [&] { return path == nullptr ? 0 : detail::not_kept(core, *path); };
    auto room = detail::check_keep_room(*state_, missing(), max_bytes);
    if (!room) {
      // Some may be marked for a session that a killed process changed, or whose time is over.
      detail::mark_kept(core);
      room = detail::check_keep_room(*state_, missing(), max_bytes);
    }
    if (!room) return room;
    if (auto done = write_kept(*state_, locked->files, true, max_bytes); !done) return done;
    if (path != nullptr) detail::keep_path(core, *path, max_bytes);
    return {};
  });
}

Result<void> Session::unkeep() {
  return guarded([&]() -> Result<void> {
    if (auto ok = detail::ready_to_change(state_); !ok) return ok;
    detail::Core& core = state_->core();
    auto locked = detail::lock_session_files(core);
    if (!locked) return failure_of(locked);
    if (auto done = write_kept(*state_, locked->files, false, 0); !done) return done;
    detail::mark_kept(core);
    return {};
  });
}

Result<void> Session::attach(std::string_view label, std::span<const std::byte> bytes) {
  return guarded([&]() -> Result<void> {
    if (auto ok = detail::ready_to_change(state_); !ok) return ok;
    if (auto ok = detail::check_attachment_label(label); !ok) return ok;
    const detail::Core& core = state_->core();
    detail::AttachmentRecord record;
    record.label = label;
    record.position = tokens();
    record.path_hash = detail::sequence_hash(core, token_ids(), state_->record.name_space);
    record.bytes = bytes.size();
    auto locked = detail::lock_session_files(core);
    if (!locked) return failure_of(locked);
    if (auto filed = detail::read_own(locked->files, *state_); !filed) return failure_of(filed);
    return locked->files.attach(state_->record.name, record, bytes);
  });
}

Result<std::vector<std::byte>> Session::attachment(std::string_view label) const {
  return guarded([&]() -> Result<std::vector<std::byte>> {
    if (auto ok = detail::ready_to_look(state_); !ok) return failure_of(ok);
    if (auto ok = detail::check_attachment_label(label); !ok) return failure_of(ok);
    const detail::Core& core = state_->core();
    auto files = detail::session_files(core, false);
    if (!files) return failure_of(files);
    auto state = files->state(state_->record.name, label);
    if (!state) return failure_of(state);
    const std::string what =
        "session \"" + state_->record.name + "\": state \"" + std::string(label) + "\" ";
    const std::uint32_t position = state->record.position;
    if (position > reusable()) {
      return fail(Errc::missing, what + "belongs to token " + std::to_string(position) +
                                     ", and only " + std::to_string(reusable()) +
                                     " are reusable: compute up to there, or attach it again");
    }
    const std::uint64_t hash =
        detail::sequence_hash(core, token_ids().first(position), state_->record.name_space);
    if (hash != state->record.path_hash) {
      return fail(Errc::missing, what + "belongs to other tokens than the session has now");
    }
    return std::move(state->bytes);
  });
}

Result<void> Session::detach(std::string_view label) {
  return guarded([&]() -> Result<void> {
    if (auto ok = detail::ready_to_change(state_); !ok) return ok;
    if (auto ok = detail::check_attachment_label(label); !ok) return ok;
    auto locked = detail::lock_session_files(state_->core());
    if (!locked) return failure_of(locked);
    if (auto filed = detail::read_own(locked->files, *state_); !filed) return failure_of(filed);
    return locked->files.detach(state_->record.name, label);
  });
}

}  // namespace esker
