#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace esker::cli {

/// Files above this are refused: 64 Mi raw ids, far above any prompt.
inline constexpr std::size_t max_token_file_bytes = std::size_t{256} << 20;

/// Reads token ids from a file, or from stdin for "-". Three forms, told apart by content: a JSON
/// list (or an object with a list "tokens", as llama-server's /tokenize answers), numbers in text,
/// raw little-endian int32.
[[nodiscard]] Result<std::vector<std::int32_t>> read_token_ids(const std::string& file);

/// The same from bytes in memory; `file` names them in messages.
[[nodiscard]] Result<std::vector<std::int32_t>> parse_token_ids(std::string_view bytes,
                                                                const std::string& file);

}  // namespace esker::cli
