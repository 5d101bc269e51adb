#pragma once

#include <cstdint>
#include <esker/geometry.hpp>
#include <string_view>
#include <vector>

#include "catalog/session_files.hpp"
#include "store/core.hpp"

namespace esker::detail {

/// What the store holds of some tokens, pinned for a moment and not counted as a use of it.
class PinnedPath {
 public:
  PinnedPath(Core& core, Tokens tokens, std::string_view name_space) noexcept;
  PinnedPath(const PinnedPath&) = delete;
  PinnedPath& operator=(const PinnedPath&) = delete;
  ~PinnedPath();

  explicit operator bool() const noexcept { return body_ != nullptr && body_->tokens > 0; }
  /// False when memory ran out: there may be more.
  [[nodiscard]] bool complete() const noexcept { return complete_; }
  [[nodiscard]] const PrefixBody& operator*() const noexcept { return *body_; }
  [[nodiscard]] const PrefixBody* operator->() const noexcept { return body_; }
  [[nodiscard]] std::uint32_t tokens() const noexcept {
    return body_ == nullptr ? 0 : body_->tokens;
  }

 private:
  Core& core_;
  PrefixBody* body_;
  bool complete_ = false;
};

/// The store's session files; made if they have to be.
[[nodiscard]] Result<SessionFiles> session_files(const Core& core, bool create);

/// Sessions that could be read. Damaged ones, and those of a newer format, are left out.
struct ReadableSessions {
  std::vector<SessionRecord> records;
  bool complete = true;  ///< false: others could not be read just now, for want of something
};
/// All of them, or those that are kept.
[[nodiscard]] ReadableSessions readable_sessions(const Core& core, bool only_kept = false);

/// True for errors that say something of a session, and not of the moment.
[[nodiscard]] bool lasting(const Error& error) noexcept;

/// A partial block stands in the store that ends exactly where these tokens end.
[[nodiscard]] bool partial_end_stands(Core& core, Tokens tokens,
                                      std::string_view name_space) noexcept;

/// Names a sequence: the hash chained over the labels that its tokens would have.
[[nodiscard]] std::uint64_t sequence_hash(const Core& core, Tokens tokens,
                                          std::string_view name_space) noexcept;

}  // namespace esker::detail
