#include "catch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <optional>
#include <thread>

#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

TEST_CASE("blocks that were stored together are one run of memory in every plane") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(100, 1);
  put(store, tokens);
  const Prefix prefix = store.lookup(tokens);
  CHECK(prefix.blocks() == 7);
  each_plane(store.geometry(), [&](std::uint32_t layer, Plane plane) {
    const Runs runs = need(prefix.view(layer, plane));
    REQUIRE(std::distance(runs.begin(), runs.end()) == 1);
    CHECK(runs.begin()->tokens == TokenRange{0, 100});
    CHECK(runs.begin()->bytes.size() == 100 * store.geometry().row_bytes(layer, plane));
  });
}

TEST_CASE("a prompt that grows in several turns stays one run while there is room behind it") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(160, 1);
  for (const std::uint32_t length : {32u, 64u, 96u, 160u}) put(store, first(tokens, length));
  const Prefix prefix = store.lookup(tokens);
  const Runs runs = need(prefix.view(0, Plane::key));
  CHECK(std::distance(runs.begin(), runs.end()) == 1);
}

TEST_CASE("runs are in order, consecutive and right where blocks lie apart") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList one = prompt(200, 1);
  const TokenList two = fork_at(one, 48, prompt(152, 2));
  put(store, first(one, 48));
  put(store, prompt(64, 3));
  put(store, one);
  put(store, prompt(64, 4));
  put(store, two);
  for (const TokenList& tokens : {one, two}) {
    const Prefix prefix = store.lookup(tokens);
    CHECK(prefix.tokens() == 200);
    CHECK(wrong(prefix, store.geometry(), tokens) == "");
  }
}

TEST_CASE("a view of a range holds exactly the rows of that range") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(100, 1);
  const Content content(tokens);
  put(store, tokens);
  const Prefix prefix = store.lookup(tokens);
  for (const TokenRange range : {TokenRange{0, 1}, TokenRange{5, 20}, TokenRange{16, 32},
                                 TokenRange{99, 100}, TokenRange{31, 97}}) {
    CAPTURE(range.begin, range.end);
    std::vector<std::byte> seen;
    for (const Run& run : need(prefix.view(2, Plane::value, range))) {
      seen.insert(seen.end(), run.bytes.begin(), run.bytes.end());
    }
    CHECK(seen == content.rows(store.geometry(), 2, Plane::value, range));
    std::vector<std::byte> copied(seen.size());
    need(prefix.copy(2, Plane::value, range, std::span(copied)));
    CHECK(copied == seen);
  }
}

TEST_CASE("a range without an end is clipped to what is there") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(40, 1));
  const Prefix prefix = store.lookup(prompt(40, 1));
  const Runs runs = need(prefix.view(0, Plane::key, {10}));
  CHECK(runs.begin()->tokens == TokenRange{10, 40});
  std::vector<std::byte> rows(30 * 34);
  need(prefix.copy(0, Plane::key, {10}, std::span(rows)));
  CHECK(rows == Content(prompt(40, 1)).rows(store.geometry(), 0, Plane::key, {10, 40}));
}

TEST_CASE("a hit that ends inside a block shows no row behind its end") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(64, 1));
  const Prefix prefix = store.lookup(first(prompt(64, 1), 42));
  CHECK(prefix.tokens() == 42);
  CHECK(wrong(prefix, store.geometry(), prompt(64, 1)) == "");
  std::vector<std::byte> too_much(64 * 34);
  CHECK(prefix.copy(0, Plane::key, {0, 64}, std::span(too_much)).error().code == Errc::invalid);
}

TEST_CASE("rows are copied into pieces with gaps between them, and the gaps stay as they are") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(100, 1);
  put(store, tokens);
  const Prefix prefix = store.lookup(tokens);
  const TokenRange range{7, 93};
  const std::uint32_t piece = GENERATE(1u, 10u, 86u);
  const std::size_t stride = 34 + GENERATE(std::size_t{0}, std::size_t{6});
  std::vector<std::byte> memory(range.size() * stride, std::byte{0xEE});
  std::vector<RowSink> sinks;
  for (std::uint32_t i = 0; i < range.size(); i += piece) {
    sinks.push_back({memory.data() + i * stride, std::min(piece, range.size() - i), stride});
  }
  need(prefix.copy(0, Plane::key, range, std::span<const RowSink>(sinks)));
  const std::vector<std::byte> expected =
      Content(tokens).rows(store.geometry(), 0, Plane::key, range);
  for (std::uint32_t i = 0; i < range.size(); ++i) {
    const auto row = std::span(memory).subspan(i * stride, stride);
    REQUIRE(std::equal(row.begin(), row.begin() + 34, expected.begin() + i * 34));
    REQUIRE(
        std::all_of(row.begin() + 34, row.end(), [](std::byte b) { return b == std::byte{0xEE}; }));
  }
}

TEST_CASE("wrong arguments of view and copy are refused by name") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(40, 1));
  const Prefix prefix = store.lookup(prompt(40, 1));
  std::vector<std::byte> out(40 * 34);
  const auto refused = [](const auto& result, const std::string& word) {
    REQUIRE_FALSE(result);
    CHECK(result.error().code == Errc::invalid);
    CHECK_THAT(result.error().message, contains(word));
  };
  refused(prefix.view(3, Plane::key), "layer");
  refused(prefix.view(1, Plane::value), "value");
  refused(prefix.view(0, Plane::key, {41, 45}), "41");
  refused(prefix.copy(3, Plane::key, {}, std::span(out)), "layer");
  refused(prefix.copy(0, Plane::key, {}, std::span(out).first(39 * 34)), "1326");
  const RowSink sink{out.data(), 39, 0};
  refused(prefix.copy(0, Plane::key, {}, std::span<const RowSink>(&sink, 1)), "39");
}

TEST_CASE("an empty prefix is a harmless value") {
  const Prefix prefix;
  CHECK(prefix.empty());
  CHECK(prefix.tokens() == 0);
  CHECK(prefix.blocks() == 0);
  CHECK(prefix.path() == 0);
  CHECK_FALSE(prefix.view(0, Plane::key));
  std::byte byte{};
  CHECK_FALSE(prefix.copy(0, Plane::key, {0, 1}, std::span(&byte, 1)));
  const Result<TokenList> ids = prefix.token_ids();
  if (ids) CHECK(ids->empty());
}

TEST_CASE("a prefix is moved, and only the last owner pins") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(40, 1));
  Prefix one = store.lookup(prompt(40, 1));
  CHECK(store.stats().blocks_pinned == 3);
  Prefix two = std::move(one);
  CHECK(one.empty());
  CHECK(wrong(two, store.geometry(), prompt(40, 1)) == "");
  Prefix three = store.lookup(prompt(40, 1));
  two = std::move(three);
  CHECK(store.stats().blocks_pinned == 3);
  two = {};
  CHECK(store.stats().blocks_pinned == 0);
}

TEST_CASE("a prefix stays readable after its path is removed and its room is wanted") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(), small_options(1 * mib));
  const TokenList tokens = prompt(100, 1);
  put(store, tokens);
  const Prefix prefix = store.lookup(tokens);
  const Freed freed = need(store.remove(std::array{prefix.path()}));
  CHECK(freed.pinned_blocks == 7);
  CHECK(store.match(tokens) == 0);
  for (std::uint64_t seed = 2; seed < 60; ++seed) need(try_put(store, prompt(100, seed)));
  CHECK(store.stats().counters.evicted_blocks > 0);
  CHECK(wrong(prefix, store.geometry(), tokens) == "");
}

TEST_CASE("a prefix stays readable after it was superseded") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(), small_options(1 * mib));
  const TokenList tokens = prompt(100, 1);
  put(store, first(tokens, 90));
  const Prefix prefix = store.lookup(first(tokens, 90));
  put(store, tokens);
  for (std::uint64_t seed = 2; seed < 60; ++seed) need(try_put(store, prompt(100, seed)));
  CHECK(wrong(prefix, store.geometry(), tokens) == "");
}

TEST_CASE("a prefix stays readable after its store handle is gone, while others want its room") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  std::optional<Store> store = make_store(dir / "s", small_geometry(), small_options(1 * mib));
  put(*store, tokens);
  const Prefix prefix = store->lookup(tokens);
  store.reset();
  Store other = need(Store::open(dir / "s"));
  CHECK(other.stats().blocks_pinned == 7);
  for (std::uint64_t seed = 2; seed < 60; ++seed) need(try_put(other, prompt(100, seed)));
  CHECK(wrong(prefix, small_geometry(), tokens) == "");
}

TEST_CASE("one prefix is read by several threads at once") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(500, 1);
  put(store, tokens);
  const Prefix prefix = store.lookup(tokens);
  std::vector<std::thread> threads;
  std::vector<std::string> problems(4);
  for (std::string& problem : problems) {
    threads.emplace_back([&] { problem = wrong(prefix, store.geometry(), tokens); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) CHECK(problem == "");
}

TEST_CASE("threads that pin and let go of one path together never leave a pin behind") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(100, 1);
  put(store, tokens);
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        if (store.lookup(tokens).tokens() != 100) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(store.stats().blocks_pinned == 0);
}

TEST_CASE("every way of verifying gives the right rows") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  {
    Store store = make_store(dir / "s");
    put(store, tokens);
  }
  Options options;
  options.verify = GENERATE(Verify::first_use, Verify::always, Verify::at_lookup, Verify::never);
  const Store store = need(Store::open(dir / "s", options));
  CHECK(get(store, tokens) == 100);
  CHECK(get(store, tokens) == 100);
  need(store.lookup(tokens).verify());
}
