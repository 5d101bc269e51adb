#pragma once

#include <sys/stat.h>
#include <cstdint>
#include <esker/result.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/area.hpp"
#include "format/session_file.hpp"

namespace esker::detail {

/// Opens a file of a session for reading. `Errc::missing` when there is none, `Errc::corrupt` for
/// what is no regular file or not the store's own.
[[nodiscard]] Result<File> open_part(const SessionArea& area, const std::string& file);

/// A session file, without the tokens that lie elsewhere.
struct LoadedSession {
  SessionContent content;
  struct stat status {};
};
/// Checks that the file is that of `name`.
[[nodiscard]] Result<LoadedSession> load_session(const SessionArea& area, std::string_view name);

/// A token file as far as a session uses it.
struct LoadedTokens {
  std::vector<std::int32_t> ids;      ///< the leading ones that the session takes
  std::uint32_t held = 0;             ///< all that are in the file
  std::uint64_t only_here_bytes = 0;  ///< disk bytes that go with this name of the file
  std::uint64_t file_bytes = 0;
};
/// Nothing in it for a session without a token file. `Errc::missing` when the file is not there.
[[nodiscard]] Result<LoadedTokens> load_tokens(const SessionArea& area,
                                               const SessionContent& content);

struct WholeSession {
  LoadedSession session;
  LoadedTokens token_file;
  [[nodiscard]] std::vector<std::int32_t> tokens() const;
};
/// Both, also while a writer replaces them.
[[nodiscard]] Result<WholeSession> load_whole(const SessionArea& area, std::string_view name);

}  // namespace esker::detail
