#include "support/sequence.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "support/mix.hpp"
#include "support/rows.hpp"
#include "support/stores.hpp"

namespace esker::test {

namespace {

constexpr std::size_t states_bytes = 16;

void fill_row(std::span<std::byte> row, std::array<std::uint64_t, 2> states, const RowsOf& where) {
  std::memcpy(row.data(), states.data(), states_bytes);
  std::uint64_t salt = mix(states[1], where.layer * 2 + static_cast<unsigned>(where.plane));
  salt = mix(salt, where.first_position);
  for (std::size_t i = states_bytes; i < row.size(); ++i) {
    row[i] = static_cast<std::byte>(salt >> (i % 8 * 8));
    if (i % 8 == 7) salt = mix(salt, i);
  }
}

std::string where_text(const RowsOf& where, std::uint32_t at) {
  return "layer " + std::to_string(where.layer) + " " + std::string(name(where.plane)) +
         " position " + std::to_string(where.first_position + at);
}

}  // namespace

void Sequence::add(std::uint64_t number) {
  states_.push_back(mix(states_.empty() ? 0 : states_.back(), number));
}

void Sequence::truncate(std::uint32_t tokens) {
  if (tokens < states_.size()) states_.resize(tokens);
}

std::vector<std::byte> Sequence::rows(const Geometry& geometry, std::uint32_t layer, Plane plane,
                                      TokenRange range) const {
  const std::uint32_t row_bytes = geometry.row_bytes(layer, plane);
  std::vector<std::byte> all(std::size_t{range.size()} * row_bytes);
  for (std::uint32_t i = 0; i < range.size() && row_bytes > 0; ++i) {
    const std::uint32_t at = range.begin + i;
    fill_row(std::span(all).subspan(std::size_t{i} * row_bytes, row_bytes),
             {at == 0 ? 0 : states_[at - 1], states_[at]}, {layer, plane, at});
  }
  return all;
}

bool Sequence::shares(const Sequence& other, std::uint32_t tokens) const {
  return tokens <= states_.size() && tokens <= other.states_.size() &&
         std::equal(states_.begin(), states_.begin() + tokens, other.states_.begin());
}

Shown shown_by(std::span<const std::byte> rows, std::uint32_t row_bytes, const RowsOf& where) {
  Shown shown;
  std::vector<std::byte> expected(row_bytes);
  for (std::uint32_t at = 0; !rows.empty(); ++at, rows = rows.subspan(row_bytes)) {
    const RowsOf here{where.layer, where.plane, where.first_position + at};
    std::array<std::uint64_t, 2> states{};
    std::memcpy(states.data(), rows.data(), states_bytes);
    fill_row(expected, states, here);
    if (!std::equal(expected.begin(), expected.end(), rows.begin())) {
      shown.problem = where_text(where, at) + ": no row that was ever written";
      return shown;
    }
    const bool first = here.first_position == 0;
    if ((first && states[0] != 0) || (at > 0 && states[0] != shown.states.back())) {
      shown.problem = where_text(where, at) + ": does not continue the row before it";
      return shown;
    }
    shown.states.push_back(states[1]);
  }
  return shown;
}

Sequence sequence_of(const KvCache& cache) {
  const Geometry& geometry = cache.geometry();
  const std::uint32_t length = cache.length();
  std::vector<std::uint64_t> states;
  bool first = true;
  each_plane(geometry, [&](std::uint32_t layer, Plane plane) {
    const std::uint32_t row_bytes = geometry.row_bytes(layer, plane);
    const auto all = plane == Plane::key ? cache.keys(layer) : cache.values(layer);
    const std::size_t bytes = std::size_t{length} * row_bytes;
    if (all.size() < bytes) throw std::runtime_error("fewer rows than were committed");
    std::vector<std::byte> copied(bytes);
    need(cache.read(layer, plane, {0, length}, copied));
    if (!std::equal(copied.begin(), copied.end(), all.begin())) {
      throw std::runtime_error("read and keys/values differ");
    }
    Shown shown = shown_by(copied, row_bytes, {layer, plane, 0});
    if (!shown.problem.empty()) throw std::runtime_error(shown.problem);
    if (!first && shown.states != states) {
      throw std::runtime_error("planes show different sequences");
    }
    states = std::move(shown.states);
    first = false;
  });
  return Sequence(std::move(states));
}

Result<void> append(KvCache& cache, Sequence& sequence, std::uint32_t tokens, std::uint64_t number,
                    bool one_by_one) {
  Sequence longer = sequence;
  for (std::uint32_t i = 0; i < tokens; ++i) longer.add(number + i);
  const Geometry& geometry = cache.geometry();
  const std::uint32_t step = one_by_one ? 1 : tokens;
  Result<void> done;
  for (std::uint32_t at = sequence.tokens(); done && at < longer.tokens(); at += step) {
    const TokenRange range{at, at + step};
    for (std::uint32_t layer = 0; done && layer < geometry.layers.size(); ++layer) {
      const auto keys = longer.rows(geometry, layer, Plane::key, range);
      const auto values = longer.rows(geometry, layer, Plane::value, range);
      done = one_by_one ? cache.store(layer, keys, values)
                        : cache.store_rows(layer, step, keys, values);
    }
    if (done) done = cache.advance(step);
  }
  if (done) sequence = std::move(longer);
  return done;
}

Geometry cache_geometry() { return small_geometry(); }

}  // namespace esker::test
