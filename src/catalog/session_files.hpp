#pragma once

#include <array>
#include <cstdint>
#include <esker/options.hpp>
#include <esker/result.hpp>
#include <esker/session_info.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "region/directory.hpp"

namespace esker::detail {

/// A session as its files tell it.
struct SessionRecord {
  std::string name;
  std::string name_space;
  std::vector<std::int32_t> tokens;
  SessionMetadata metadata;
  std::int32_t priority = 0;
  std::uint64_t time_to_live_s = 0;
  std::uint64_t created_unix_ns = 0;
  std::uint64_t revision = 0;  ///< grows with every write
  bool kept = false;
  std::uint64_t keep_max_bytes = 0;
  std::vector<std::uint64_t> dropped_paths;  ///< ends of what it has dropped; the last 256

  // Told by the file system, not by the file.
  std::uint64_t used_unix_ns = 0;  ///< mtime of the session file
  std::uint64_t file_bytes = 0;    ///< session file and token file

  [[nodiscard]] bool expired(std::uint64_t now_unix_ns) const noexcept {
    return time_to_live_s != 0 && now_unix_ns / 1'000'000'000 > time_to_live_s &&
           used_unix_ns / 1'000'000'000 < now_unix_ns / 1'000'000'000 - time_to_live_s;
  }
};

/// Engine state as its file tells it.
struct AttachmentRecord {
  std::string label;
  std::uint32_t position = 0;
  std::uint64_t path_hash = 0;  ///< chain hash of the first `position` tokens
  std::uint64_t bytes = 0;
};

/// `Errc::invalid` unless this is 1…64 bytes of UTF-8 without control characters.
[[nodiscard]] Result<void> check_session_name(std::string_view name);
/// `Errc::invalid` unless this is 1…32 of A-Z a-z 0-9 _ -.
[[nodiscard]] Result<void> check_attachment_label(std::string_view label);
/// `Errc::invalid` for an empty key, for what is not UTF-8 or has control characters, and for more
/// than 16 KiB of keys and values.
[[nodiscard]] Result<void> check_metadata(const SessionMetadata& metadata);

/// The files below `sessions/`, one set per session; doc/session_format.md. Whoever changes them
/// holds the SESSIONS lock; whoever reads needs none, since files only appear whole.
class SessionFiles {
 public:
  struct Place {
    std::array<std::uint8_t, 16> uuid{};  ///< the store's
    Sharing sharing = Sharing::owner;
    std::uint64_t share_bytes = 0;  ///< cap for all files of sessions together
  };

  SessionFiles() noexcept;  ///< of no store: there are no sessions

  /// Opens `sessions/`. With `create` it is made; without, a store that has none has no sessions,
  /// and nothing can be written.
  [[nodiscard]] static Result<SessionFiles> open(const Directory& store, const Place& place,
                                                 bool create);

  /// Names of all sessions, good or damaged, sorted. A session file whose name is none that Esker
  /// gives is listed under the name of the file; `read` tells, and `remove` takes it.
  [[nodiscard]] Result<std::vector<std::string>> names() const;
  /// Names of all files, sorted.
  [[nodiscard]] Result<std::vector<std::string>> file_list() const;
  [[nodiscard]] bool has(std::string_view name) const noexcept;
  /// Whether its file says that a session is kept.
  [[nodiscard]] Result<bool> is_kept(std::string_view name) const;
  /// `Errc::missing`, or `Errc::corrupt` naming file and field.
  [[nodiscard]] Result<SessionRecord> read(std::string_view name) const;

  /// Writes a session whole: temporary file, fsync, rename, fsync of the directory. Killed at any
  /// point the old session is there or the new one. `Errc::full` when the share is used up. The
  /// revision is written as given; a damaged session is replaced, what is attached to it is lost
  /// only if its session file was what is damaged.
  [[nodiscard]] Result<void> write(const SessionRecord& record) const;
  /// Writes `child` as a branch of the session `parent`: the same token file and attachments, by
  /// links. `child.tokens` begins with all tokens of the parent, as they were last written; the
  /// parent stays as it is, revision and time of use included. `Errc::invalid` when the name is
  /// taken or the tokens are others.
  [[nodiscard]] Result<void> write_fork(std::string_view parent, const SessionRecord& child) const;
  /// Killed in between the old name or the new one is a whole session, or both are. `Errc::invalid`
  /// when the new name is taken; a damaged session keeps its name.
  [[nodiscard]] Result<void> rename(std::string_view from, std::string_view to) const;
  /// Removes all files of a session, damaged or not.
  [[nodiscard]] Result<void> remove(std::string_view name) const;
  /// Marks a session as used now.
  void touch(std::string_view name) const noexcept;

  /// What is attached to a session, by headers: `state` compares the payload. A damaged file has
  /// its label and `damage` instead.
  struct Attachment {
    AttachmentRecord record;
    std::string damage;
  };
  /// `files` is what `file_list` has said, for those who ask for many sessions.
  [[nodiscard]] Result<std::vector<Attachment>> attachments(
      std::string_view name, const std::vector<std::string>* files = nullptr) const;
  [[nodiscard]] Result<void> attach(std::string_view name, const AttachmentRecord& record,
                                    std::span<const std::byte> bytes) const;
  /// The state and what it is tied to, checked.
  struct State {
    AttachmentRecord record;
    std::vector<std::byte> bytes;
  };
  [[nodiscard]] Result<State> state(std::string_view name, std::string_view label) const;
  [[nodiscard]] Result<void> detach(std::string_view name, std::string_view label) const;

  /// Of everything below `sessions/`: sizes rounded up to 4,096; what has many names counts once.
  [[nodiscard]] Result<std::uint64_t> used_bytes() const;
  /// Removes what killed writers left: temporaries, and parts without a session file.
  void sweep() const noexcept;

 private:
  SessionFiles(Directory directory, const Place& place) noexcept;

  Directory directory_;  ///< not open: there are no sessions
  Place place_;
};

}  // namespace esker::detail
