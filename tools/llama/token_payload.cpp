#include "llama/token_payload.hpp"

#include <fmt/format.h>

namespace esker::cli::llama {

namespace {

constexpr std::int32_t packed_marker = -1;
constexpr std::int32_t packed_version = 1;
constexpr std::uint32_t packed_overhead_words = 4;  // marker, version, tokens, media chunks

/// Checks the three words in front of packed tokens and returns how many tokens follow.
std::uint32_t read_packed_head(FieldReader& in, std::uint32_t words) {
  if (words < packed_overhead_words) {
    in.refuse(Errc::corrupt,
              fmt::format("n_words: found {}, expected at least {} for packed tokens", words,
                          packed_overhead_words));
    return 0;
  }
  (void)in.i32("token marker");
  const std::int32_t version = in.i32("token payload version");
  if (in.ok() && version != packed_version) {
    in.refuse(Errc::incompatible,
              fmt::format("token payload version: found {}, expected {}: written by a newer "
                          "llama.cpp than this esker knows",
                          version, packed_version));
  }
  const std::uint32_t count = in.u32("n_tokens");
  if (in.ok() && count > words - packed_overhead_words) {
    in.reject("n_tokens", count,
              fmt::format("at most {}, from n_words", words - packed_overhead_words));
  }
  return count;
}

/// Checks what follows packed tokens: nothing but "no media".
void read_packed_tail(FieldReader& in, std::uint32_t words, std::uint32_t count) {
  const std::uint32_t media = in.u32("n_media");
  const std::uint32_t extra = words - count - packed_overhead_words;
  if (in.ok() && media > extra) {
    in.reject("n_media", media, fmt::format("at most {}, from n_words", extra));
  }
  if (in.ok() && media != 0) {
    in.refuse(Errc::incompatible,
              fmt::format("holds {} media chunks (images or sound): only text can be kept, because "
                          "the tokens of a picture do not tell what was seen",
                          media));
  }
  if (in.ok() && extra != 0) {
    in.reject("n_media", fmt::format("{} more words behind it", extra), "none without media");
  }
}

std::vector<std::int32_t> read_ids(FieldReader& in, std::uint32_t count) {
  std::vector<std::int32_t> tokens(count);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    tokens[i] = in.i32("token");
    if (tokens[i] < 0) {
      in.reject(fmt::format("token {}", i), std::to_string(tokens[i]),
                "0 or more: negative ids stand for media");
    }
  }
  return tokens;
}

}  // namespace

TokenList read_tokens(FieldReader& in) {
  TokenList list;
  const std::uint32_t words = in.u32("n_words");
  const std::uint64_t start = in.offset();
  in.skip(words, 4, "token words");  // proves that they fit before anything is allocated
  if (!in.ok() || words == 0) return list;

  in.seek(start);
  const bool packed = in.i32("first token word") == packed_marker;
  in.seek(start);
  list.payload = packed ? TokenPayload::packed : TokenPayload::plain;
  const std::uint32_t count = packed ? read_packed_head(in, words) : words;
  if (!in.ok()) return list;
  list.tokens = read_ids(in, count);
  if (packed) read_packed_tail(in, words, count);
  return list;
}

std::vector<std::int32_t> token_words(TokenPayload payload, Tokens tokens) {
  const auto count = static_cast<std::int32_t>(tokens.size());
  const bool packed = payload == TokenPayload::packed;
  std::vector<std::int32_t> words;
  words.reserve(tokens.size() + 1 + packed_overhead_words);
  words.push_back(packed ? count + static_cast<std::int32_t>(packed_overhead_words) : count);
  if (packed) words.insert(words.end(), {packed_marker, packed_version, count});
  words.insert(words.end(), tokens.begin(), tokens.end());
  if (packed) words.push_back(0);
  return words;
}

}  // namespace esker::cli::llama
