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
  [[nodiscard]] const PrefixBody& operator*() const noexcept { return *body_; }
  [[nodiscard]] const PrefixBody* operator->() const noexcept { return body_; }
  [[nodiscard]] std::uint32_t tokens() const noexcept {
    return body_ == nullptr ? 0 : body_->tokens;
  }

 private:
  Core& core_;
  PrefixBody* body_;
};

/// The store's session files; made if they have to be.
[[nodiscard]] Result<SessionFiles> session_files(const Core& core, bool create);

/// All sessions that can be read, or those of them that are kept.
[[nodiscard]] std::vector<SessionRecord> readable_sessions(const Core& core,
                                                           bool only_kept = false);

/// Names a sequence: the hash chained over the labels that its tokens would have.
[[nodiscard]] std::uint64_t sequence_hash(const Core& core, Tokens tokens,
                                          std::string_view name_space) noexcept;

}  // namespace esker::detail
