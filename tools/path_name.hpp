#pragma once

#include <cstdint>
#include <esker/store.hpp>
#include <span>
#include <string>
#include <string_view>

namespace esker::cli {

/// Paths are named by the first 12 hex digits of Prefix::path; any unique prefix is accepted.
inline constexpr std::size_t shown_path_digits = 12;

[[nodiscard]] std::string path_name(std::uint64_t path);
[[nodiscard]] std::string full_path_name(std::uint64_t path);

/// True for 1…16 hex digits.
[[nodiscard]] bool looks_like_path(std::string_view text) noexcept;

/// The one stored path whose name starts with `text`. No such path, or several, is an error that
/// lists what could have been meant; `lister` is the command that shows all names.
[[nodiscard]] Result<std::uint64_t> find_path(std::string_view text,
                                              std::span<const PathInfo> paths,
                                              std::string_view lister = "esker ls STORE");
/// The same, but a name that is given in full and is not listed is taken as it is: that path may be
/// cold.
[[nodiscard]] Result<std::uint64_t> find_path_or_cold(std::string_view text,
                                                      std::span<const PathInfo> paths);

}  // namespace esker::cli
