#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "catch.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

TokenList family_prompt(std::mt19937_64& random) {
  const auto cut = static_cast<std::uint32_t>(random() % 10 * 13);
  const auto tail = static_cast<std::uint32_t>(1 + random() % 60);
  return fork_at(prompt(130, random() % 4), cut, prompt(tail, random() % 5));
}

/// Everything that an engine's threads may do with one handle. Returns what went wrong.
std::string work(Store& store, std::uint64_t seed, int rounds) {
  std::mt19937_64 random(seed);
  std::vector<Prefix> held;
  for (int round = 0; round < rounds; ++round) {
    const TokenList tokens = family_prompt(random);
    const std::uint64_t dice = random() % 100;
    if (dice < 50) {
      const std::string problem = wrong(store.lookup(tokens), store.geometry(), tokens);
      if (!problem.empty()) return problem;
    } else if (dice < 95) {
      Result<Prefix> prefix = try_put_pinned(store, tokens);
      if (!prefix) return "put: " + prefix.error().message;
      const std::string problem = wrong(*prefix, store.geometry(), tokens);
      if (!problem.empty()) return problem;
      if (random() % 4 == 0) held.push_back(std::move(*prefix));
      if (held.size() > 5) held.erase(held.begin());
    } else if (dice < 97) {
      if (!store.evict(store.stats().store_bytes / 2)) return "evict failed";
    } else if (dice < 98) {
      if (!store.trim(UINT64_MAX)) return "trim failed";
    } else {
      (void)store.remove(std::array{path_of(store, tokens)});
    }
  }
  return "";
}

}  // namespace

TEST_CASE("threads of one handle look up, store, evict and remove at once without a wrong byte") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(), small_options(1 * mib));
  std::vector<std::thread> threads;
  std::array<std::string, 4> problems;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    threads.emplace_back([&, i] { problems[i] = work(store, i, 600); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) CHECK(problem == "");
  const Stats stats = store.stats();
  CHECK(stats.blocks_reserved == 0);
  CHECK(stats.blocks_pinned == 0);
  CHECK(adds_up(stats));
  CHECK(stats.counters.bad_blocks == 0);
  CHECK(stats.counters.evicted_blocks > 0);
  CHECK(need(store.verify()).damage.empty());
}

TEST_CASE(
    "threads with a handle each look up, store, evict and remove at once without a wrong byte") {
  const TempDir dir;
  const Store store = make_store(dir / "s", small_geometry(), small_options(1 * mib));
  std::vector<std::thread> threads;
  std::array<std::string, 4> problems;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    threads.emplace_back([&, i] {
      Store mine = need(Store::open(dir / "s"));
      problems[i] = work(mine, 10 + i, 600);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) CHECK(problem == "");
  const Stats stats = store.stats();
  CHECK(stats.blocks_reserved == 0);
  CHECK(stats.blocks_pinned == 0);
  CHECK(adds_up(stats));
  CHECK(stats.counters.bad_blocks == 0);
  CHECK(stats.seats_taken == 1);
}

TEST_CASE("handles are opened and closed by several threads at once") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(100, 1));
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 40; ++round) {
        const Result<Store> mine = Store::open(dir / "s");
        if (!mine || mine->lookup(prompt(100, 1)).tokens() != 100) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(store.stats().seats_taken == 1);
}
