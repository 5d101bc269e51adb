#include "catch.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cstring>
#include <esker/kv_cache.hpp>
#include <sstream>

#include "support/sequence.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

constexpr std::uint32_t room = 300;

/// The same cache in private memory and in a file: every behaviour here is that of both.
struct AnyCache {
  TempDir dir;
  KvCache cache;
  Sequence sequence;

  explicit AnyCache(bool in_file, std::uint32_t max_tokens = room)
      : cache(in_file ? need(KvCache::create(dir / "c", cache_geometry(), max_tokens))
                      : need(KvCache::in_memory(cache_geometry(), max_tokens))) {}

  void add(std::uint32_t tokens, std::uint64_t number = 1) {
    need(append(cache, sequence, tokens, number));
  }
  void check() const { CHECK(sequence_of(cache).states() == sequence.states()); }
};

std::vector<std::byte> bytes(std::size_t count) { return std::vector<std::byte>(count); }

/// Stores, without advance, rows of tokens that `sequence` would have next.
void store_next(KvCache& cache, const Sequence& longer, std::uint32_t tokens) {
  const TokenRange range{cache.length(), cache.length() + tokens};
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    need(cache.store_rows(layer, tokens, longer.rows(cache.geometry(), layer, Plane::key, range),
                          longer.rows(cache.geometry(), layer, Plane::value, range)));
  }
}

}  // namespace

TEST_CASE("rows that were stored and advanced over are there, token by token or many at once",
          "[cache]") {
  AnyCache any(GENERATE(false, true));
  CHECK(any.cache.empty());
  need(append(any.cache, any.sequence, 40, 1, true));
  any.add(100, 500);
  any.add(1, 7);
  CHECK(any.cache.length() == 141);
  CHECK(any.cache.max_tokens() == room);
  any.check();
}

TEST_CASE("a stored row can be read at once, before advance, and only length counts it not",
          "[cache]") {
  AnyCache any(GENERATE(false, true));
  any.add(5);
  const std::vector<std::byte> key(34, std::byte{1});
  const std::vector<std::byte> value(40, std::byte{2});
  need(any.cache.store(0, key, value));
  CHECK(any.cache.length() == 5);
  REQUIRE(any.cache.keys(0).size() == 6 * 34);
  REQUIRE(any.cache.values(0).size() == 6 * 40);
  CHECK(std::equal(key.begin(), key.end(), any.cache.keys(0).last(34).begin()));
  CHECK(any.cache.keys(1).size() == 5 * 66);
  // Again for the same layer: overwrites.
  const std::vector<std::byte> other(34, std::byte{9});
  need(any.cache.store(0, other, value));
  REQUIRE(any.cache.keys(0).size() == 6 * 34);
  CHECK(any.cache.keys(0).back() == std::byte{9});
  // `read` is for what is committed.
  auto out = bytes(6 * 34);
  CHECK(any.cache.read(0, Plane::key, {0, 6}, out).error().code == Errc::invalid);
  any.check();
}

TEST_CASE("a store with a wrong layer or width names what was given and what is allowed",
          "[cache]") {
  AnyCache any(GENERATE(false, true));
  const auto layer = any.cache.store(3, bytes(34), bytes(40));
  CHECK(layer.error().code == Errc::invalid);
  CHECK_THAT(layer.error().message, contains("layer is 3, allowed is 0…2"));
  const auto key = any.cache.store(0, bytes(33), bytes(40));
  CHECK(key.error().code == Errc::invalid);
  CHECK_THAT(key.error().message, contains("found 33 bytes, expected 34"));
  const auto value = any.cache.store(0, bytes(34), bytes(41));
  CHECK_THAT(value.error().message, contains("found 41 bytes, expected 40"));
  const auto none = any.cache.store(1, bytes(66), bytes(1));
  CHECK_THAT(none.error().message, contains("found 1 bytes, expected 0"));
  const auto many = any.cache.store_rows(0, 3, bytes(3 * 34), bytes(2 * 40));
  CHECK_THAT(many.error().message, contains("found 80 bytes, expected 120"));
  CHECK(any.cache.keys(0).empty());
  CHECK(any.cache.store(1, bytes(66), {}));
  CHECK(any.cache.store_rows(0, 0, {}, {}));
  CHECK(any.cache.keys(0).empty());
}

TEST_CASE("at capacity a store says full and changes nothing", "[cache]") {
  AnyCache any(GENERATE(false, true), 10);
  any.add(10);
  const auto done = any.cache.store(0, bytes(34), bytes(40));
  CHECK(done.error().code == Errc::full);
  CHECK_THAT(done.error().message, contains("10"));
  const auto moved = any.cache.advance();
  CHECK(moved.error().code == Errc::full);
  any.check();
  need(any.cache.truncate(8));
  any.sequence.truncate(8);
  CHECK(any.cache.store_rows(0, 3, bytes(3 * 34), bytes(3 * 40)).error().code == Errc::full);
  CHECK(any.cache.store_rows(0, UINT32_MAX, {}, {}).error().code == Errc::invalid);
  any.add(2, 99);
  any.check();
}

TEST_CASE("advance commits only what every layer has stored, and names the one that has not",
          "[cache]") {
  AnyCache any(GENERATE(false, true));
  any.add(4);
  need(any.cache.store(0, bytes(34), bytes(40)));
  need(any.cache.store(2, bytes(18), bytes(57)));
  const auto done = any.cache.advance();
  CHECK(done.error().code == Errc::invalid);
  CHECK_THAT(done.error().message, contains("layer 1 has stored 0 rows beyond 4, needed are 1"));
  CHECK(any.cache.length() == 4);
  CHECK(any.cache.advance(0));
  CHECK(any.cache.advance(UINT32_MAX).error().code == Errc::full);
  CHECK(any.cache.advance(room - 3).error().code == Errc::full);
  CHECK(any.cache.advance(room - 4).error().code == Errc::invalid);
  CHECK(any.cache.length() == 4);
  need(any.cache.store(1, bytes(66), {}));
  need(any.cache.advance());
  CHECK(any.cache.length() == 5);
}

TEST_CASE("rows beyond an advance stay stored and can be committed later", "[cache]") {
  AnyCache any(GENERATE(false, true));
  any.add(3);
  Sequence longer = any.sequence;
  for (std::uint64_t i = 0; i < 8; ++i) longer.add(i);
  store_next(any.cache, longer, 8);
  need(any.cache.advance(3));
  CHECK(any.cache.keys(0).size() == 11 * 34);
  need(any.cache.advance(5));
  CHECK(sequence_of(any.cache).states() == longer.states());
}

TEST_CASE("rows are visited in order with their positions", "[cache]") {
  AnyCache any(GENERATE(false, true));
  any.add(20);
  std::uint32_t next = 0;
  any.cache.for_each_value(2, [&](std::uint32_t position, std::span<const std::byte> row) {
    CHECK(position == next);
    const auto expected =
        any.sequence.rows(any.cache.geometry(), 2, Plane::value, {next, next + 1});
    CHECK(std::equal(row.begin(), row.end(), expected.begin(), expected.end()));
    ++next;
  });
  CHECK(next == 20);
  any.cache.for_each_value(1, [&](std::uint32_t, std::span<const std::byte>) { FAIL("no V"); });
  any.cache.for_each_key(9, [&](std::uint32_t, std::span<const std::byte>) { FAIL("no layer"); });
  std::uint32_t keys = 0;
  any.cache.for_each_key(1, [&](std::uint32_t, std::span<const std::byte> row) {
    CHECK(row.size() == 66);
    ++keys;
  });
  CHECK(keys == 20);
}

TEST_CASE("truncate drops positions and what was not advanced over, and never extends", "[cache]") {
  AnyCache any(GENERATE(false, true));
  any.add(30);
  need(any.cache.truncate(31));
  CHECK(any.cache.length() == 30);
  need(any.cache.store(0, bytes(34), bytes(40)));
  need(any.cache.truncate(UINT32_MAX));
  CHECK(any.cache.length() == 30);
  CHECK(any.cache.keys(0).size() == 30 * 34);
  const std::byte* first = any.cache.keys(0).data();
  need(any.cache.truncate(12));
  CHECK(any.cache.keys(0).size() == 12 * 34);
  // Zeroes nothing: the old row lies where it was.
  const auto old = any.sequence.rows(any.cache.geometry(), 0, Plane::key, {12, 13});
  CHECK(std::memcmp(first + std::size_t{12} * 34, old.data(), old.size()) == 0);
  any.sequence.truncate(12);
  any.add(10, 77);
  any.check();
  need(any.cache.truncate(0));
  CHECK(any.cache.empty());
  CHECK(any.cache.keys(0).empty());
}

TEST_CASE("clear leaves no token and no byte of what was there", "[cache]") {
  AnyCache any(GENERATE(false, true));
  any.add(100);
  const std::byte* keys = any.cache.keys(0).data();
  const std::byte* values = any.cache.values(2).data();
  need(any.cache.truncate(20));
  need(any.cache.store_rows(2, 120, std::vector<std::byte>(120 * 18, std::byte{5}),
                            std::vector<std::byte>(120 * 57, std::byte{6})));
  need(any.cache.clear());
  CHECK(any.cache.empty());
  const auto zero = [](std::byte b) { return b == std::byte{0}; };
  CHECK(std::all_of(keys, keys + std::size_t{room} * 34, zero));
  CHECK(std::all_of(values, values + std::size_t{room} * 57, zero));
  any.sequence.truncate(0);
  any.add(50, 3);
  any.check();
}

TEST_CASE("a draft is verified, and what was not accepted is dropped from both caches", "[cache]") {
  AnyCache target(GENERATE(false, true));
  AnyCache draft(false);
  target.add(50);
  draft.add(50);
  for (const std::uint32_t accepted : {0U, 2U, 5U}) {
    const KvMark at_target = target.cache.mark();
    const KvMark at_draft = draft.cache.mark();
    const std::uint32_t length = target.cache.length();
    target.add(5, accepted);
    draft.add(4, accepted);  // the last drafted token was never fed to the draft model
    CHECK(need(target.cache.rollback(at_target, accepted)) == length + accepted);
    CHECK(need(draft.cache.rollback(at_draft, accepted)) == length + std::min(accepted, 4U));
    target.sequence.truncate(length + accepted);
    draft.sequence.truncate(length + accepted);
    target.check();
    draft.check();
    need(target.cache.truncate(50));
    need(draft.cache.truncate(50));
    target.sequence.truncate(50);
    draft.sequence.truncate(50);
  }
}

TEST_CASE("a mark is stale exactly when something below it was dropped since", "[cache]") {
  AnyCache any(false);
  any.add(50);
  const KvMark at_50 = any.cache.mark();
  any.add(10);
  const KvMark at_60 = any.cache.mark();
  any.add(10);
  CHECK(need(any.cache.rollback(at_60, 3)) == 63);
  CHECK(need(any.cache.rollback(at_60)) == 60);
  CHECK(need(any.cache.rollback(at_60)) == 60);
  need(any.cache.truncate(55));
  any.sequence.truncate(55);
  any.add(20, 9);
  const auto stale = any.cache.rollback(at_60);
  CHECK(stale.error().code == Errc::invalid);
  CHECK_THAT(stale.error().message, contains("60"));
  CHECK(any.cache.length() == 75);
  CHECK(need(any.cache.rollback(at_50, UINT32_MAX)) == 75);
  CHECK(need(any.cache.rollback(at_50, 1)) == 51);
  need(any.cache.clear());
  CHECK(any.cache.rollback(at_50).error().code == Errc::invalid);
  AnyCache other(false);
  other.add(60);
  CHECK(other.cache.rollback(at_50).error().code == Errc::invalid);
  CHECK(other.cache.rollback(KvMark{}).error().code == Errc::invalid);
}

TEST_CASE("marks agree with a list of everything that was dropped, in thousands of random loops",
          "[cache]") {
  const Geometry geometry = tiny_geometry();
  KvCache cache = need(KvCache::in_memory(geometry, 64));
  struct Known {
    KvMark mark;
    std::uint32_t deepest = UINT32_MAX;
  };
  std::vector<Known> marks;
  std::uint64_t state = 5;
  const auto dice = [&](std::uint64_t sides) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::uint32_t>((state >> 33) % sides);
  };
  const auto dropped_to = [&](std::uint32_t tokens) {
    if (tokens >= cache.length()) return;
    for (Known& known : marks) known.deepest = std::min(known.deepest, tokens);
  };
  for (int step = 0; step < 20'000; ++step) {
    const std::uint32_t what = dice(4);
    if (what == 0) marks.push_back({cache.mark()});
    if (marks.size() > 20) marks.erase(marks.begin() + dice(20));
    if (what == 1 && cache.length() < 60) {
      need(cache.store_rows(0, 4, bytes(4), {}));
      need(cache.advance(4));
    }
    if (what == 2) {
      const std::uint32_t to = dice(65);
      dropped_to(to);
      need(cache.truncate(to));
    }
    if (what == 3 && !marks.empty()) {
      const Known known = marks[dice(marks.size())];
      const std::uint32_t accepted = dice(5);
      const bool good = known.deepest >= known.mark.tokens;
      if (good) dropped_to(known.mark.tokens + accepted);
      REQUIRE(cache.rollback(known.mark, accepted).has_value() == good);
    }
  }
}

TEST_CASE("a snapshot holds the used part only, outlives the cache and comes back", "[cache]") {
  AnyCache any(GENERATE(false, true));
  any.add(70);
  need(any.cache.store(0, bytes(34), bytes(40)));
  const KvSnapshot taken = need(any.cache.snapshot());
  CHECK(taken.tokens() == 70);
  CHECK(taken.bytes() == 70 * cache_geometry().token_bytes());
  need(any.cache.truncate(10));
  Sequence other = any.sequence;
  other.truncate(10);
  need(append(any.cache, other, 100, 1234));
  need(any.cache.restore(taken));
  any.check();
  AnyCache smaller(true, 70);
  need(smaller.cache.restore(taken));
  CHECK(sequence_of(smaller.cache).states() == any.sequence.states());
  const KvSnapshot nothing = need(AnyCache(false).cache.snapshot());
  CHECK(nothing.bytes() == 0);
  need(any.cache.restore(nothing));
  CHECK(any.cache.empty());
}

TEST_CASE("a snapshot that does not fit is refused by name and the cache stays as it was",
          "[cache]") {
  AnyCache any(GENERATE(false, true), 50);
  any.add(20);
  const auto refused = [&](const Geometry& geometry, std::uint32_t tokens,
                           const std::string& word) {
    KvCache other = need(KvCache::in_memory(geometry, 100));
    for (std::uint32_t layer = 0; layer < geometry.layers.size(); ++layer) {
      const LayerRows rows = geometry.layers[layer];
      need(other.store_rows(layer, tokens, bytes(std::size_t{tokens} * rows.key_row_bytes),
                            bytes(std::size_t{tokens} * rows.value_row_bytes)));
    }
    need(other.advance(tokens));
    const auto done = any.cache.restore(need(other.snapshot()));
    CHECK(done.error().code == Errc::incompatible);
    CHECK_THAT(done.error().message, contains(word));
    any.check();
  };
  Geometry geometry = cache_geometry();
  geometry.layers.pop_back();
  refused(geometry, 5, "layers: 3 and 2");
  geometry = cache_geometry();
  geometry.layers[1].key_row_bytes = 65;
  refused(geometry, 5, "row bytes of layer 1");
  geometry = cache_geometry();
  geometry.dtype = "bf16";
  refused(geometry, 5, "dtype: f16 and bf16");
  refused(cache_geometry(), 51, "room for 50 and 51 tokens");
  CHECK(any.cache.restore(KvSnapshot()).error().code == Errc::incompatible);
  any.check();
}

TEST_CASE("a snapshot of another model is refused by the names of the keys that differ",
          "[cache]") {
  ModelId model = small_model();
  KvCache cache = need(KvCache::in_memory(cache_geometry(), 10, model));
  need(model.set("weights", "beef"));
  const KvCache other = need(KvCache::in_memory(cache_geometry(), 10, model));
  const auto done = cache.restore(need(other.snapshot()));
  CHECK(done.error().code == Errc::incompatible);
  CHECK_THAT(done.error().message, contains("weights: \"0123abcd\" and \"beef\""));
  const KvCache unnamed = need(KvCache::in_memory(cache_geometry(), 10));
  CHECK(cache.restore(need(unnamed.snapshot())));
}

TEST_CASE("a view is one run of what keys shows, cut to a range", "[cache]") {
  AnyCache any(GENERATE(false, true));
  const Runs none = need(any.cache.view(0, Plane::key));
  CHECK(none.begin() == none.end());
  any.add(30);
  const Runs all = need(any.cache.view(2, Plane::value));
  REQUIRE(std::distance(all.begin(), all.end()) == 1);
  CHECK(all.begin()->tokens == TokenRange{0, 30});
  CHECK(all.begin()->bytes.data() == any.cache.values(2).data());
  CHECK(all.begin()->bytes.size() == 30 * 57);
  const Runs part = need(any.cache.view(2, Plane::value, {7, 12}));
  REQUIRE(std::distance(part.begin(), part.end()) == 1);
  CHECK(part.begin()->tokens == TokenRange{7, 12});
  CHECK(part.begin()->bytes.data() == any.cache.values(2).data() + 7 * 57);
  CHECK(part.begin()->bytes.size() == 5 * 57);
  CHECK(any.cache.view(3, Plane::key).error().code == Errc::invalid);
  CHECK(any.cache.view(1, Plane::value).error().code == Errc::invalid);
  CHECK(any.cache.view(0, Plane::key, {31, 40}).error().code == Errc::invalid);
  CHECK(any.cache.view(0, Plane::key, {5, 4}).error().code == Errc::invalid);
}

TEST_CASE("read copies committed rows of a range and refuses what is not there", "[cache]") {
  AnyCache any(GENERATE(false, true));
  any.add(30);
  auto out = bytes(4 * 66);
  need(any.cache.read(1, Plane::key, {3, 7}, out));
  CHECK(out == any.sequence.rows(any.cache.geometry(), 1, Plane::key, {3, 7}));
  need(any.cache.read(1, Plane::key, {26, UINT32_MAX}, out));
  CHECK(out == any.sequence.rows(any.cache.geometry(), 1, Plane::key, {26, 30}));
  need(any.cache.read(1, Plane::key, {30, 30}, {}));
  CHECK(any.cache.read(1, Plane::key, {0, 3}, out).error().code == Errc::invalid);
  CHECK(any.cache.read(1, Plane::value, {0, 4}, out).error().code == Errc::invalid);
  CHECK(any.cache.read(4, Plane::key, {0, 4}, out).error().code == Errc::invalid);
  CHECK(any.cache.read(1, Plane::key, {31, 33}, out).error().code == Errc::invalid);
}

TEST_CASE("a cache that cannot be is refused with the value and what is allowed", "[cache]") {
  CHECK_THAT(KvCache::in_memory(cache_geometry(), 0).error().message,
             contains("max_tokens is 0, allowed is 1…"));
  CHECK(KvCache::in_memory(cache_geometry(), UINT32_MAX).error().code == Errc::invalid);
  CHECK(KvCache::in_memory(Geometry{}, 10).error().code == Errc::invalid);
  Geometry huge;
  huge.dtype = "i8";
  huge.layers.assign(Geometry::max_layers, {Geometry::max_row_bytes, Geometry::max_row_bytes});
  CHECK_THAT(KvCache::in_memory(huge, 1U << 28).error().message, contains("largest cache"));
}

TEST_CASE("a handle that was moved from answers, and touches nothing", "[cache]") {
  AnyCache any(GENERATE(false, true));
  any.add(3);
  const KvCache taken = std::move(any.cache);
  CHECK(taken.length() == 3);
  CHECK(any.cache.length() == 0);
  CHECK(any.cache.max_tokens() == 0);
  CHECK(any.cache.keys(0).empty());
  CHECK(any.cache.store(0, bytes(34), bytes(40)).error().code == Errc::invalid);
  CHECK(any.cache.advance().error().code == Errc::invalid);
  CHECK(any.cache.sync().error().code == Errc::invalid);
  CHECK(any.cache.rollback(any.cache.mark()).error().code == Errc::invalid);
  CHECK(any.cache.snapshot().error().code == Errc::invalid);
  CHECK(any.cache.geometry().layers.empty());
}

TEST_CASE("a cache prints as one line, never as its buffers", "[cache]") {
  AnyCache any(GENERATE(false, true));
  any.add(3);
  std::ostringstream out;
  out << any.cache;
  CHECK(out.str() == "KvCache: 3 of 300 tokens, 3 layers, 215 bytes per token, dtype f16");
}

TEST_CASE("a cache in private memory is the forked child's own copy", "[cache]") {
  AnyCache any(false);
  any.add(20);
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 0;
    try {
      any.sequence.truncate(10);
      need(any.cache.truncate(10));
      any.add(30, 4);
      status = sequence_of(any.cache).states() == any.sequence.states() ? 0 : 1;
    } catch (...) {
      status = 2;
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  any.check();
}

TEST_CASE("syncing private memory has nothing to do", "[cache]") {
  AnyCache any(false);
  any.add(2);
  CHECK(any.cache.sync());
}
