#pragma once

#include <cstdint>
#include <esker/result.hpp>
#include <span>
#include <vector>

#include "catalog/area.hpp"
#include "catalog/new_file.hpp"
#include "format/session_file.hpp"

namespace esker::detail {

/// The token file that a session may go on using.
struct TokenSource {
  std::span<const std::int32_t> ids;  ///< what is proven of it
  std::uint32_t held = 0;             ///< all that are in it
  std::uint64_t suffix = 0;           ///< the name under which the session has it
};

/// What will be written of a session.
struct WritePlan {
  SessionContent content;
  std::span<const std::int32_t> new_token_file;  ///< empty: none is written
  std::vector<std::byte> session_file;
  std::uint64_t disk_bytes = 0;  ///< of the files that are written

  /// The session goes on using the token file of its source.
  [[nodiscard]] bool uses_source() const noexcept {
    return content.token_suffix != 0 && new_token_file.empty();
  }
};

/// More inline tokens than this, and a quarter of what the token file holds, go to a new one.
inline constexpr std::size_t inline_tokens_max = 4096;
/// A parent with more inline tokens than this gets a token file, so that its branches share them.
inline constexpr std::size_t inline_tokens_of_parent = 64;

/// Divides `tokens`, which must outlive the plan, between token file and session file. More than
/// `inline_max` inline tokens go to a new token file.
[[nodiscard]] WritePlan plan_write(SessionContent content, std::span<const std::int32_t> tokens,
                                   const TokenSource& source, std::size_t inline_max,
                                   const Uuid& uuid);
/// The limit that a save of a session with this token file has.
[[nodiscard]] std::size_t inline_limit(const TokenSource& source) noexcept;

/// Token file, fsync, session file, fsync: in this order. Parts that the caller has named already
/// are in `parts`; they stay as soon as the session file names them. Then removes what the session
/// no longer uses.
[[nodiscard]] Result<void> carry_out(const SessionArea& area, const WritePlan& plan,
                                     NewParts& parts, const Naming& naming);

}  // namespace esker::detail
