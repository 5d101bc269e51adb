#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/prefix.hpp>
#include <esker/reservation.hpp>
#include <esker/result.hpp>
#include <esker/session_info.hpp>
#include <esker/stats.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace esker {

class Store;

namespace detail {
class SessionState;
}  // namespace detail

/// A named, durable sequence over a store: a chat that never has to be prefilled again.
/// Threads:  one at a time per handle. Handles of one session may exist in several processes; the
///           second to save gets `Errc::busy` and resumes again.
/// Lifetime: keeps the store open, and its blocks pinned. The file of a session holds tokens and
///           metadata, never blocks: what was evicted has to be computed again, no more.
/// Errors:   `Errc::missing` for a name that is not there (or whose time to live is over),
///           `Errc::corrupt` names a damaged file, `Errc::full` the share that is used up.
/// Cost:     `append` is a reservation; `save` writes one small file and waits for the disk, and
///           at most 5 s for another process that is just changing sessions (then `Errc::busy`).
class Session {
 public:
  /// Starts a session and writes its file. `Errc::invalid` when the name is taken, or is not 1…64
  /// bytes of UTF-8 without control characters.
  [[nodiscard]] static Result<Session> create(Store& store, std::string_view name,
                                              const SessionOptions& options = {});
  /// Opens a session, looks up its tokens and pins what is there: `reusable()` says how many.
  [[nodiscard]] static Result<Session> resume(Store& store, std::string_view name);
  /// All sessions by name, the damaged ones included, with what is reusable of each.
  [[nodiscard]] static Result<std::vector<SessionInfo>> list(const Store& store);
  /// One of them, also a damaged one; here the bytes of its attachments are checked as well.
  [[nodiscard]] static Result<SessionInfo> describe(const Store& store, std::string_view name);
  /// Forgets sessions: their files, and the blocks that no other session and no other path uses,
  /// wiped; also those of turns that they have dropped. All names are checked first. A damaged
  /// session can be removed as well. Turns that a handle never saved are nobody's: `esker rm`.
  [[nodiscard]] static Result<Freed> remove(Store& store, std::span<const std::string> names,
                                            bool dry_run = false);

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] std::uint32_t tokens() const noexcept;  ///< of the whole sequence
  [[nodiscard]] Tokens token_ids() const noexcept;      ///< valid until the session changes
  /// Leading tokens whose rows are here and pinned: stored ones, and the private tail.
  [[nodiscard]] std::uint32_t reusable() const noexcept;
  [[nodiscard]] const Geometry& geometry() const noexcept;  ///< of its store
  [[nodiscard]] const ModelId& model() const noexcept;

  /// Room for `tokens` behind the sequence, and for what is not reusable before them: write the
  /// rows of `missing()`. With `publish` its full blocks become findable for everyone and the
  /// session grows by `tokens`; the rows of the last, partial block stay private to this handle
  /// until `save`. Dropped, the session stays as it was. One at a time; it may outlive the session.
  [[nodiscard]] Result<Reservation> append(Tokens tokens);
  /// Drops tokens from `tokens` on; never extends. `save` makes it durable.
  [[nodiscard]] Result<void> truncate(std::uint32_t tokens);
  /// Publishes the private tail and writes the file: from here on the session survives anything.
  [[nodiscard]] Result<void> save();

  /// A new session with the same tokens, metadata and engine state, on disk at once. Shares
  /// everything; copies the rows of the private tail, at most one block. Both go on by themselves.
  /// Tokens that this session has appended since its last save are saved on the way.
  [[nodiscard]] Result<Session> fork(std::string_view name);
  /// `Errc::invalid` when the new name is taken.
  [[nodiscard]] Result<void> rename(std::string_view name);

  /// The rows of [0, reusable()): shared blocks, then the private tail.
  [[nodiscard]] Result<Runs> view(std::uint32_t layer, Plane plane,
                                  TokenRange range = {}) const noexcept;
  /// The stored part of them, pinned as long as the session holds it.
  [[nodiscard]] const Prefix& prefix() const noexcept;

  /// From now on the session's blocks are never evicted, nor are those it will add: up to
  /// `max_bytes` over all kept sessions of the store (0: half of its capacity). Beyond it this
  /// and, later, `append` are `Errc::full`. Written to the file at once.
  [[nodiscard]] Result<void> keep(std::uint64_t max_bytes = 0);
  [[nodiscard]] Result<void> unkeep();

  /// Engine state that is only valid at the present end of the sequence: a sliding window, a
  /// recurrent state, a sampler. Written to disk at once, beside the session; `label` is 1…32 of
  /// A-Z a-z 0-9 _ -. One of the same label is replaced: `save` first, else a kill leaves the new
  /// state without its tokens.
  [[nodiscard]] Result<void> attach(std::string_view label, std::span<const std::byte> bytes);
  /// The state of this label. `Errc::missing` unless the session still has exactly the tokens that
  /// it was attached to and all of them are reusable; `Errc::corrupt` when its file is damaged.
  [[nodiscard]] Result<std::vector<std::byte>> attachment(std::string_view label) const;
  [[nodiscard]] Result<void> detach(std::string_view label);

  /// Metadata; `save` writes it. A key of "" or control characters are `Errc::invalid`; an empty
  /// value removes the key.
  [[nodiscard]] Result<void> set(std::string_view key, std::string_view value);
  void set_priority(std::int32_t priority) noexcept;
  void set_time_to_live(std::uint64_t seconds) noexcept;  ///< 0: for ever

  [[nodiscard]] Result<SessionInfo> info() const;

 private:
  explicit Session(std::shared_ptr<detail::SessionState> state) noexcept;
  std::shared_ptr<detail::SessionState> state_;
};

}  // namespace esker
