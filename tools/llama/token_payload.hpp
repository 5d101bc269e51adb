#pragma once

#include <cstdint>
#include <esker/geometry.hpp>
#include <vector>

#include "llama/field_reader.hpp"
#include "llama/layout.hpp"

namespace esker::cli::llama {

struct TokenList {
  TokenPayload payload = TokenPayload::plain;
  std::vector<std::int32_t> tokens;
};

/// Reads the number of words and the words. Images and sound are refused: their words do not tell
/// what was seen. What is wrong stands in the reader.
[[nodiscard]] TokenList read_tokens(FieldReader& in);

/// The words as a file holds them, their number first.
[[nodiscard]] std::vector<std::int32_t> token_words(TokenPayload payload, Tokens tokens);

}  // namespace esker::cli::llama
