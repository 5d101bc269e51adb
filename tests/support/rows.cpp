#include "support/rows.hpp"

#include <algorithm>
#include <cstring>

#include "support/mix.hpp"

namespace esker::test {

namespace {

std::uint64_t hash(std::string_view bytes, std::uint64_t state) {
  for (const char byte : bytes) state = mix(state, static_cast<unsigned char>(byte));
  return mix(state, bytes.size());
}

std::string place(std::uint32_t layer, Plane plane, std::uint32_t token) {
  return "layer " + std::to_string(layer) + (plane == Plane::key ? " key" : " value") + " token " +
         std::to_string(token);
}

std::string compare(std::span<const std::byte> found, std::span<const std::byte> expected,
                    std::uint32_t row_bytes) {
  if (found.size() != expected.size()) {
    return std::to_string(found.size()) + " bytes instead of " + std::to_string(expected.size());
  }
  const auto [at, unused] = std::mismatch(found.begin(), found.end(), expected.begin());
  if (at == found.end()) return "";
  return "wrong bytes in row " + std::to_string((at - found.begin()) / row_bytes);
}

std::string wrong_view(const Prefix& prefix, std::uint32_t layer, Plane plane,
                       std::span<const std::byte> expected, std::uint32_t row_bytes) {
  const Result<Runs> runs = prefix.view(layer, plane);
  // Without pins there are no views, as a test of its own says.
  if (!runs && runs.error().message.find("Access::inspect") != std::string::npos) return "";
  if (!runs) return place(layer, plane, 0) + ": view: " + runs.error().message;
  std::uint32_t next = 0;
  for (const Run& run : *runs) {
    if (run.tokens.begin != next || run.tokens.empty()) {
      return place(layer, plane, next) + ": runs are not consecutive";
    }
    next = run.tokens.end;
    if (std::size_t{next} * row_bytes > expected.size()) return "a run is too long";
    const auto part = expected.subspan(std::size_t{run.tokens.begin} * row_bytes,
                                       std::size_t{run.tokens.size()} * row_bytes);
    const std::string problem = compare(run.bytes, part, row_bytes);
    if (!problem.empty()) return place(layer, plane, run.tokens.begin) + ": view: " + problem;
  }
  return next == prefix.tokens() ? "" : place(layer, plane, next) + ": the view ends here";
}

}  // namespace

TokenList prompt(std::uint32_t count, std::uint64_t seed) {
  TokenList tokens(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<std::int32_t>(mix(mix(seed, 77), i) % 50'000);
  }
  return tokens;
}

TokenList fork_at(const TokenList& tokens, std::uint32_t count, const TokenList& tail) {
  TokenList all(tokens.begin(), tokens.begin() + count);
  all.insert(all.end(), tail.begin(), tail.end());
  return all;
}

TokenList first(const TokenList& tokens, std::uint32_t count) { return fork_at(tokens, count, {}); }

Content::Content(Tokens tokens, Namespace name_space) {
  states_.reserve(tokens.size());
  std::uint64_t state = hash(name_space, 1);
  for (const std::int32_t token : tokens) {
    state = mix(state, static_cast<std::uint32_t>(token));
    states_.push_back(state);
  }
}

Content::Content(std::span<const Key> keys, std::uint32_t block_tokens, Namespace name_space) {
  for (const Key key : keys) {
    const std::uint64_t state = hash(key, hash(name_space, 2));
    for (std::uint32_t i = 0; i < block_tokens; ++i) states_.push_back(mix(state, i));
  }
}

void Content::row(std::uint32_t layer, Plane plane, std::uint32_t position,
                  std::span<std::byte> out) const {
  const std::uint64_t seed =
      mix(states_[position], std::uint64_t{layer} * 2 + static_cast<std::uint64_t>(plane));
  for (std::size_t at = 0; at < out.size(); at += 8) {
    const std::uint64_t word = mix(seed, at);
    std::memcpy(out.data() + at, &word, std::min<std::size_t>(8, out.size() - at));
  }
}

std::vector<std::byte> Content::rows(const Geometry& geometry, std::uint32_t layer, Plane plane,
                                     TokenRange range) const {
  const std::size_t row_bytes = geometry.row_bytes(layer, plane);
  std::vector<std::byte> all(range.size() * row_bytes);
  for (std::uint32_t i = 0; i < range.size(); ++i) {
    row(layer, plane, range.begin + i, std::span(all).subspan(i * row_bytes, row_bytes));
  }
  return all;
}

Result<void> write_rows(Reservation& reservation, const Geometry& geometry, const Content& content,
                        TokenRange range) {
  Result<void> result;
  if (range.empty()) return result;
  each_plane(geometry, [&](std::uint32_t layer, Plane plane) {
    if (!result) return;
    const std::vector<std::byte> rows = content.rows(geometry, layer, plane, range);
    result = reservation.write(layer, plane, range.begin, rows);
  });
  return result;
}

std::string wrong_rows(const Prefix& prefix, const Geometry& geometry, const Content& content) {
  std::string problem;
  if (prefix.tokens() > content.tokens()) return "more tokens than were asked for";
  const TokenRange all{0, prefix.tokens()};
  if (all.empty()) return "";
  each_plane(geometry, [&](std::uint32_t layer, Plane plane) {
    if (!problem.empty()) return;
    const std::uint32_t row_bytes = geometry.row_bytes(layer, plane);
    const std::vector<std::byte> expected = content.rows(geometry, layer, plane, all);
    problem = wrong_view(prefix, layer, plane, expected, row_bytes);
    if (!problem.empty()) return;
    std::vector<std::byte> found(expected.size());
    const Result<void> copied = prefix.copy(layer, plane, all, std::span(found));
    if (!copied) {
      problem = place(layer, plane, 0) + ": copy: " + copied.error().message;
      return;
    }
    problem = compare(found, expected, row_bytes);
    if (!problem.empty()) problem = place(layer, plane, 0) + ": copy: " + problem;
  });
  return problem;
}

std::string wrong(const Prefix& prefix, const Geometry& geometry, Tokens tokens,
                  Namespace name_space) {
  if (prefix.tokens() > tokens.size()) return "more tokens than were asked for";
  const Tokens covered = tokens.first(prefix.tokens());
  if (!prefix.empty()) {
    const Result<TokenList> ids = prefix.token_ids();
    if (!ids) return "token_ids: " + ids.error().message;
    if (!std::equal(ids->begin(), ids->end(), covered.begin(), covered.end())) {
      return "the labels are not the tokens that were asked for";
    }
  }
  return wrong_rows(prefix, geometry, Content(covered, name_space));
}

}  // namespace esker::test
