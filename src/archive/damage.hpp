#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace esker::detail {

/// What there is to do about a snapshot that is damaged.
inline constexpr std::string_view damage_hint =
    "the file is damaged: get it anew, or export it again";

/// A number in a snapshot that cannot be.
[[nodiscard]] inline Failure bad(std::string_view where, std::string_view field,
                                 std::uint64_t found, std::string_view expected) {
  return fail_field(Errc::corrupt, where, field, std::to_string(found), expected, damage_hint);
}

}  // namespace esker::detail
