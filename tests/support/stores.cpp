#include "support/stores.hpp"

#include "support/disk.hpp"

namespace esker::test {

Geometry small_geometry(std::uint32_t block_tokens) {
  Geometry geometry;
  geometry.layers = {{34, 40}, {66, 0}, {18, 57}};
  geometry.dtype = "f16";
  geometry.block_tokens = block_tokens;
  return geometry;
}

Geometry tiny_geometry(std::uint32_t block_tokens) {
  Geometry geometry;
  geometry.layers = {{1, 0}};
  geometry.dtype = "i8";
  geometry.block_tokens = block_tokens;
  return geometry;
}

ModelId small_model() { return need(ModelId::parse("weights=0123abcd\nrope=10000\nrank=0/1\n")); }

Options small_options(std::uint64_t capacity_bytes) {
  Options options;
  options.capacity_bytes = capacity_bytes;
  options.segment_bytes = 256 * kib;
  options.seats = 16;
  options.keep_free_bytes = 0;
  return options;
}

Store make_store(const std::string& path, const Geometry& geometry, const Options& options) {
  return need(Store::create(path, geometry, small_model(), options));
}

Result<Prefix> try_put_pinned(Store& store, Tokens tokens, Namespace name_space) {
  Result<Reservation> reservation = store.reserve(tokens, name_space);
  if (!reservation) return tl::unexpected(reservation.error());
  const Content content(tokens, name_space);
  const Result<void> written =
      write_rows(*reservation, store.geometry(), content, reservation->missing());
  if (!written) return tl::unexpected(written.error());
  return std::move(*reservation).publish();
}

Result<std::uint32_t> try_put(Store& store, Tokens tokens, Namespace name_space) {
  const Result<Prefix> prefix = try_put_pinned(store, tokens, name_space);
  if (!prefix) return tl::unexpected(prefix.error());
  return prefix->tokens();
}

void put(Store& store, Tokens tokens, Namespace name_space) {
  const std::uint32_t stored = need(try_put(store, tokens, name_space));
  if (stored != tokens.size()) {
    throw std::runtime_error("stored only " + std::to_string(stored) + " of " +
                             std::to_string(tokens.size()) + " tokens");
  }
}

std::uint32_t get(const Store& store, Tokens tokens, Namespace name_space) {
  const Prefix prefix = store.lookup(tokens, name_space);
  const std::string problem = wrong(prefix, store.geometry(), tokens, name_space);
  if (!problem.empty()) throw std::runtime_error(problem);
  return prefix.tokens();
}

std::uint64_t path_of(const Store& store, Tokens tokens, Namespace name_space) {
  return store.lookup(tokens, name_space).path();
}

bool adds_up(const Stats& stats) {
  return stats.blocks_free + stats.blocks_reserved + stats.blocks_ready + stats.blocks_retired +
             stats.blocks_bad ==
         stats.blocks_total;
}

std::size_t files_with_row(const std::string& store, const TokenList& tokens, std::uint32_t token) {
  return files_with(store,
                    Content(tokens).rows(small_geometry(), 1, Plane::key, {token, token + 1}));
}

std::size_t files_with_label(const std::string& store, const TokenList& tokens,
                             std::uint32_t from) {
  return files_with(store, std::as_bytes(std::span(tokens).subspan(from, 8)));
}

}  // namespace esker::test
