#include "catch.hpp"

#include <atomic>
#include <thread>

#include "cold_support.hpp"
#include "support/process.hpp"

using namespace esker;
using namespace esker::test;

TEST_CASE(
    "what is prefetched from several threads is there soon, and the handle ends at any time") {
  const TempDir dir;
  {
    Store store = make_cold_store(dir / "s");
    for (std::uint64_t seed = 0; seed < 8; ++seed) put(store, prompt(300, seed));
    REQUIRE(freeze_all(store).blocks == 8 * 19);
  }
  Store store = need(Store::open(dir / "s"));
  CHECK_FALSE(store.prefetch(prompt(300, 99)));
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    threads.emplace_back([&store, seed] { (void)store.prefetch(prompt(300, seed)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    while (store.match(prompt(300, seed)) < 300) sleep_ms(1);
    CHECK(get(store, prompt(300, seed)) == 300);
  }
  CHECK_FALSE(store.prefetch(prompt(300, 1)));
  need(store.evict(0));
  for (std::uint64_t seed = 0; seed < 8; ++seed) CHECK(store.prefetch(prompt(300, seed)));
}

TEST_CASE("threads that freeze, thaw, prefetch and remove in one handle see no wrong byte") {
  const TempDir dir;
  const std::string path = dir / "s";
  { const Store store = make_cold_store(path, cold_options(256 * kib)); }
  Options options;
  options.thaw = true;
  options.freeze_evicted = true;
  options.keep_free_bytes = 0;
  Store store = need(Store::open(path, options));
  for (std::uint64_t seed = 0; seed < 4; ++seed) put(store, prompt(100, seed));
  std::atomic<int> wrong_bytes{0};
  const auto work = [&](std::uint64_t self) {
    for (std::uint64_t i = 0; i < 25; ++i) {
      const TokenList tokens = prompt(100, (self + i) % 4);
      if (i % 5 == self % 5) (void)store.freeze(UINT64_MAX);
      if (i % 7 == 3) (void)store.prefetch(tokens);
      if (i % 11 == 5) (void)store.remove(std::array{path_of(store, tokens)});
      const Prefix prefix = store.lookup(tokens);
      if (!wrong(prefix, store.geometry(), tokens).empty()) ++wrong_bytes;
      if (prefix.tokens() < 100) (void)try_put(store, tokens);
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t self = 0; self < 4; ++self) threads.emplace_back(work, self);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong_bytes == 0);
  CHECK(store.stats().blocks_reserved == 0);
  CHECK(need(store.verify()).damage.empty());
}
