#include "catch.hpp"

#include <esker/esker.hpp>
#include <esker/kv_cache.hpp>

#include "support/disk.hpp"
#include "support/sequence.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// Fills a cache with what a store has to hold for these tokens.
void fill(KvCache& cache, const TokenList& tokens, std::uint32_t from = 0) {
  const Content content(tokens);
  const TokenRange range{from, static_cast<std::uint32_t>(tokens.size())};
  const Geometry& geometry = cache.geometry();
  for (std::uint32_t layer = 0; layer < geometry.layers.size(); ++layer) {
    const auto values = geometry.row_bytes(layer, Plane::value) > 0
                            ? content.rows(geometry, layer, Plane::value, range)
                            : std::vector<std::byte>();
    need(cache.store_rows(layer, range.size(), content.rows(geometry, layer, Plane::key, range),
                          values));
  }
  need(cache.advance(range.size()));
}

void check_rows(const KvCache& cache, const TokenList& tokens) {
  REQUIRE(cache.length() == tokens.size());
  const Content content(tokens);
  const TokenRange all{0, cache.length()};
  each_plane(cache.geometry(), [&](std::uint32_t layer, Plane plane) {
    const auto rows = plane == Plane::key ? cache.keys(layer) : cache.values(layer);
    const auto expected = content.rows(cache.geometry(), layer, plane, all);
    REQUIRE(std::equal(rows.begin(), rows.end(), expected.begin(), expected.end()));
  });
}

KvCache cache_at(const TempDir& dir, bool in_file, std::uint32_t max_tokens = 500) {
  CacheFileOptions options;
  options.model = small_model();
  return in_file ? need(KvCache::create(dir / "cache", small_geometry(), max_tokens, options))
                 : need(KvCache::in_memory(small_geometry(), max_tokens, small_model()));
}

}  // namespace

TEST_CASE("what a cache saves is found by everyone, and loads into another cache", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(203, 1);
  KvCache cache = cache_at(dir, GENERATE(false, true));
  fill(cache, tokens);
  const Prefix saved = need(cache.save(store, tokens));
  CHECK(saved.tokens() == 203);
  CHECK(get(store, tokens) == 203);
  KvCache other = need(KvCache::in_memory(small_geometry(), 203));
  need(other.load(saved));
  check_rows(other, tokens);
  // All of it is there: nothing is written again.
  const auto before = store.stats().counters.written_bytes;
  CHECK(need(cache.save(store, tokens)).tokens() == 203);
  CHECK(store.stats().counters.written_bytes == before);
}

TEST_CASE("only the blocks that a store lacks are written to it", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(320, 1);
  put(store, first(tokens, 160));
  const auto before = store.stats().blocks_ready;
  KvCache cache = cache_at(dir, false);
  fill(cache, tokens);
  CHECK(need(cache.save(store, tokens)).tokens() == 320);
  CHECK(store.stats().blocks_ready == before + 10);
  CHECK(get(store, tokens) == 320);
}

TEST_CASE("a load from a position keeps what is below it and drops what is above", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(200, 1);
  put(store, tokens);
  const Prefix prefix = store.lookup(tokens);
  KvCache cache = cache_at(dir, GENERATE(false, true));
  const std::uint32_t from = GENERATE(0U, 1U, 37U, 48U, 150U);
  fill(cache, fork_at(tokens, from, prompt(150 - from, 2)));
  need(cache.load(prefix, from));
  check_rows(cache, tokens);
  need(cache.load(prefix, 200));
  check_rows(cache, tokens);
  const auto beyond = cache.load(prefix, 201);
  CHECK(beyond.error().code == Errc::invalid);
  CHECK_THAT(beyond.error().message, contains("from is 201, allowed is 0…200"));
  check_rows(cache, tokens);
  need(cache.truncate(10));
  CHECK(cache.load(prefix, 11).error().code == Errc::invalid);
  CHECK(cache.length() == 10);
  need(cache.load(Prefix()));
  CHECK(cache.empty());
}

TEST_CASE("a prefix that is too long, or of another shape or model, is refused by name",
          "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(100, 1);
  put(store, tokens);
  const Prefix prefix = store.lookup(tokens);
  KvCache small = cache_at(dir, false, 99);
  fill(small, first(tokens, 20));
  const auto full = small.load(prefix);
  CHECK(full.error().code == Errc::full);
  CHECK_THAT(full.error().message, contains("100 tokens"));
  CHECK_THAT(full.error().message, contains("room for 99"));
  check_rows(small, first(tokens, 20));

  Geometry geometry = small_geometry();
  geometry.layers[0].key_row_bytes = 33;
  KvCache shaped = need(KvCache::in_memory(geometry, 200));
  CHECK(shaped.load(prefix).error().code == Errc::incompatible);
  CHECK_THAT(shaped.load(prefix).error().message, contains("row bytes of layer 0"));
  CHECK(shaped.save(store, {}).error().code == Errc::incompatible);

  ModelId model = small_model();
  need(model.set("weights", "beef"));
  KvCache other = need(KvCache::in_memory(small_geometry(), 200, model));
  CHECK_THAT(other.load(prefix).error().message, contains("weights: \"beef\" and \"0123abcd\""));
  fill(other, tokens);
  CHECK_THAT(other.save(store, tokens).error().message, contains("weights"));
  KvCache unnamed = need(KvCache::in_memory(small_geometry(16 * 2), 200));
  need(unnamed.load(prefix));
  check_rows(unnamed, tokens);
}

TEST_CASE("a damaged block stops a load: the positions below it stay, nothing is committed",
          "[cache]") {
  const TempDir dir;
  const TokenList tokens = prompt(200, 1);
  {
    Store store = make_store(dir / "s");
    put(store, tokens);
  }
  const DiskBlock block = find_block(dir / "s", tokens, 96);
  flip_byte(block.file, row_offset(block, 16, 2, Plane::value, 3));
  Store store = need(Store::open(dir / "s"));
  const Prefix prefix = store.lookup(tokens);
  REQUIRE(prefix.tokens() == 200);
  KvCache cache = cache_at(dir, GENERATE(false, true));
  fill(cache, first(tokens, 50));
  const auto done = cache.load(prefix, 32);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::corrupt);
  check_rows(cache, first(tokens, 32));
  const Prefix shorter = store.lookup(tokens);
  CHECK(shorter.tokens() < 200);
  need(cache.load(shorter, 32));
  check_rows(cache, first(tokens, shorter.tokens()));
}

TEST_CASE("a miss loads nothing and leaves what is below its position", "[cache]") {
  KvCache cache = need(KvCache::in_memory(cache_geometry(), 32));
  Sequence sequence;
  need(append(cache, sequence, 20, 1));
  need(cache.load(Prefix(), 7));
  CHECK(cache.length() == 7);
  need(cache.load(Prefix()));
  CHECK(cache.empty());
}

TEST_CASE("more tokens than the cache has rows of cannot be saved", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(60, 1);
  KvCache cache = cache_at(dir, false);
  fill(cache, first(tokens, 50));
  const auto saved = cache.save(store, tokens);
  CHECK(saved.error().code == Errc::invalid);
  CHECK_THAT(saved.error().message, contains("60 tokens"));
  CHECK_THAT(saved.error().message, contains("rows of 50"));
  CHECK(store.match(tokens) == 0);
  CHECK(need(cache.save(store, first(tokens, 32), "tenant")).tokens() == 32);
  CHECK(store.match(tokens) == 0);
  CHECK(store.match(tokens, "tenant") == 32);
}

TEST_CASE("a full store takes the beginning of what a cache saves", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(), small_options(1 * mib));
  const TokenList tokens = prompt(8'000, 1);
  KvCache cache = need(KvCache::in_memory(small_geometry(), 8'000));
  fill(cache, tokens);
  const Prefix saved = need(cache.save(store, tokens));
  CHECK(saved.tokens() > 0);
  CHECK(saved.tokens() < 8'000);
  need(cache.load(saved));
  check_rows(cache, first(tokens, saved.tokens()));
}

TEST_CASE("a handle that only reads a cache file can save it", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(90, 1);
  KvCache writer = cache_at(dir, true);
  fill(writer, tokens);
  CacheFileOptions options;
  options.access = CacheAccess::read;
  const KvCache reader = need(KvCache::open(dir / "cache", options));
  CHECK(need(reader.save(store, tokens)).tokens() == 90);
  CHECK(get(store, tokens) == 90);
}
