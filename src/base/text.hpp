#pragma once

#include <string_view>

namespace esker::detail {

/// Well formed UTF-8 (no overlong forms, no surrogates) without control characters: safe to print,
/// and to put into JSON.
[[nodiscard]] bool is_plain_text(std::string_view text) noexcept;

}  // namespace esker::detail
