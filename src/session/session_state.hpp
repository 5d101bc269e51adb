#pragma once

#include <esker/result.hpp>
#include <esker/session_info.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "catalog/session_files.hpp"
#include "store/core.hpp"
#include "store/sequence.hpp"
#include "sync/lock.hpp"

namespace esker::detail {

/// What a Session owns: the sequence, and what its file says but for the tokens.
class SessionState {
 public:
  SessionState(std::shared_ptr<Core> core, SessionRecord record);

  [[nodiscard]] Core& core() const noexcept { return *sequence->core; }
  /// The session as it should be written now.
  [[nodiscard]] SessionRecord record_to_write() const;

  std::shared_ptr<Sequence> sequence;
  SessionRecord record;  ///< `tokens` stays empty: they are the sequence's
};

/// An error while a reservation is open, in a forked child, where the handle may not write, and for
/// a Session that was moved from.
[[nodiscard]] Result<void> ready_to_change(const std::shared_ptr<SessionState>& state);
[[nodiscard]] Result<void> ready_to_look(const std::shared_ptr<SessionState>& state);

/// `Errc::full` when `more` blocks beside those that are kept already exceed the limit.
[[nodiscard]] Result<void> check_keep_room(const SessionState& state, std::uint64_t more,
                                           std::uint64_t max_bytes);

/// The lock under which session files change, and the files.
struct LockedFiles {
  LockFile lock;
  SessionFiles files;
};
[[nodiscard]] Result<LockedFiles> lock_session_files(const Core& core);

/// What the files say of this session, if it is still at our revision. `Errc::busy` when another
/// handle has saved it since, `Errc::missing` when it was removed.
[[nodiscard]] Result<SessionRecord> read_own(const SessionFiles& files, const SessionState& state);

/// Writes the state's session; the state is then at that revision, also if only the last step
/// failed, which makes it durable.
[[nodiscard]] Result<void> write_own(const SessionFiles& files, SessionState& state,
                                     const SessionRecord& record);

/// Everything known of a session by its files; a damaged one is described as such.
[[nodiscard]] SessionInfo describe_session(Core& core, const SessionFiles& files,
                                           const std::string& name,
                                           const std::vector<std::string>* file_list = nullptr);

/// Fills in what the files say of attachments, judged by the tokens that are reusable.
void describe_attachments(const Core& core, const SessionFiles& files, Tokens reusable,
                          SessionInfo& info, const std::vector<std::string>* file_list = nullptr);

[[nodiscard]] SessionInfo info_of(const SessionRecord& record);

}  // namespace esker::detail
