#pragma once

#include <string>
#include <string_view>

namespace esker::cli {

/// Text for a page, between tags or within quotes: names and notes come from other processes, and
/// nothing in them may become markup.
[[nodiscard]] std::string html_text(std::string_view text);

/// A coordinate of a drawing, as short as it is exact: a page holds thousands of them.
[[nodiscard]] std::string html_number(double value);

}  // namespace esker::cli
