#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace esker::cli {

/// Names and notes come from other processes: nothing that a terminal obeys may reach it, and
/// nothing that is no UTF-8. Such letters become a question mark.
[[nodiscard]] std::string harmless(std::string_view text);

/// Letters, counted as UTF-8 does: continuation bytes take no room.
[[nodiscard]] std::size_t width(std::string_view text);

/// Cut or filled with blanks to exactly so many letters.
[[nodiscard]] std::string fitted(std::string_view text, std::size_t columns);

}  // namespace esker::cli
