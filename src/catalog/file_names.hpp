#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace esker::detail {

/// One of A-Z a-z 0-9 _ -: stands in file names as it is.
[[nodiscard]] bool is_plain_letter(char letter) noexcept;

/// Percent-encoding of a name: what is not A-Z a-z 0-9 _ - becomes %XX, so that no '.' and no '/'
/// is left in it.
[[nodiscard]] std::string encode_session_name(std::string_view name);
/// Nothing unless `stem` is what `encode_session_name` gives for a valid name.
[[nodiscard]] std::optional<std::string> decode_session_name(std::string_view stem);

[[nodiscard]] std::string session_file_name(std::string_view stem);
[[nodiscard]] std::string token_file_name(std::string_view stem, std::uint64_t suffix);
[[nodiscard]] std::string state_file_name(std::string_view stem, std::uint64_t suffix,
                                          std::string_view label);

/// What a name in `sessions/` says. The views are parts of the name that was given.
struct SessionFileName {
  enum class Kind { session, tokens, state, temporary, foreign };
  Kind kind = Kind::foreign;
  std::string_view stem;
  std::uint64_t suffix = 0;
  std::string_view label;
};
[[nodiscard]] SessionFileName parse_file_name(std::string_view file) noexcept;

/// The name under which a session file is listed: that of its session, or, where the name of the
/// file is none that Esker gives, the file's own with %XX for what cannot be printed.
[[nodiscard]] std::string listed_name(std::string_view file);

}  // namespace esker::detail
