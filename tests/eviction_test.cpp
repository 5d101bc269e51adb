#include "catch.hpp"

#include <array>
#include <chrono>

#include "support/disk.hpp"
#include "support/process.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// Touch stamps count sixteenths of a second: uses that must differ have to be that far apart.
void let_time_pass() { sleep_ms(200); }

std::uint64_t unix_now_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace

TEST_CASE("evicting takes a path from its end: what is left is a shorter hit") {
  const TempDir dir;
  const TokenList tokens = prompt(320, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  const std::uint64_t block_bytes = store.stats().block_bytes;
  for (const std::uint32_t blocks : {19u, 12u, 5u, 1u, 0u}) {
    const Freed freed = need(store.evict(blocks * block_bytes));
    const Stats stats = store.stats();
    CAPTURE(blocks);
    CHECK(freed.blocks > 0);
    CHECK(freed.reusable_bytes == freed.blocks * block_bytes);
    CHECK(stats.store_bytes <= blocks * block_bytes);
    CHECK(get(store, tokens) == stats.blocks_ready * 16);
  }
}

TEST_CASE("evicting down to what is stored evicts nothing") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(320, 1));
  CHECK(need(store.evict(store.stats().store_bytes)).blocks == 0);
  CHECK(get(store, prompt(320, 1)) == 320);
}

TEST_CASE("a dry run tells what would go and changes nothing") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(320, 1));
  const std::uint64_t path = store.lookup(prompt(320, 1)).path();
  CHECK(need(store.evict(0, true)).blocks == 20);
  CHECK(need(store.evict_older_than(unix_now_ns() + 1'000'000'000, true)).blocks == 20);
  CHECK(need(store.remove(std::array{path}, true)).blocks == 20);
  need(store.trim(UINT64_MAX, true));
  CHECK(store.stats().blocks_ready == 20);
  CHECK(get(store, prompt(320, 1)) == 320);
}

TEST_CASE("the path that was not used for longest goes first") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    put(store, prompt(160, seed));
    let_time_pass();
  }
  CHECK(get(store, prompt(160, 1)) == 160);
  need(store.evict(20 * store.stats().block_bytes));
  CHECK(get(store, prompt(160, 1)) == 160);
  CHECK(get(store, prompt(160, 2)) == 0);
  CHECK(get(store, prompt(160, 3)) == 160);
}

TEST_CASE("a shared beginning is as young as its youngest use") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList one = prompt(160, 1);
  const TokenList two = fork_at(one, 80, prompt(80, 2));
  put(store, one);
  let_time_pass();
  put(store, two);
  need(store.evict(10 * store.stats().block_bytes));
  CHECK(get(store, two) == 160);
  CHECK(get(store, one) == 80);
}

TEST_CASE("what was used since a moment stays, what was not goes") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(160, 1));
  put(store, prompt(160, 2));
  let_time_pass();
  const std::uint64_t moment = unix_now_ns();
  let_time_pass();
  CHECK(get(store, prompt(160, 2)) == 160);
  CHECK(need(store.evict_older_than(moment)).blocks == 10);
  CHECK(get(store, prompt(160, 1)) == 0);
  CHECK(get(store, prompt(160, 2)) == 160);
}

TEST_CASE("a pinned path is never evicted and stays findable") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(), small_options(1 * mib));
  put(store, prompt(160, 1));
  const Prefix pinned = store.lookup(prompt(160, 1));
  Store other = need(Store::open(dir / "s"));
  for (std::uint64_t seed = 2; seed < 80; ++seed) put(other, prompt(160, seed));
  CHECK(other.stats().counters.evicted_blocks > 0);
  need(other.evict(0));
  CHECK(get(other, prompt(160, 1)) == 160);
  CHECK(wrong(pinned, store.geometry(), prompt(160, 1)) == "");
  CHECK(other.stats().blocks_ready == 10);
}

TEST_CASE("a full store always takes the newest prompt and keeps what is used") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(), small_options(2 * mib));
  const TokenList hot = prompt(320, 0);
  put(store, hot);
  for (std::uint64_t seed = 1; seed < 60; ++seed) {
    put(store, prompt(160, seed));
    CHECK(get(store, prompt(160, seed)) == 160);
    CHECK(get(store, hot) == 320);
    if (seed % 4 == 0) sleep_ms(70);
  }
  const Stats stats = store.stats();
  CHECK(stats.counters.evicted_blocks > 0);
  CHECK(adds_up(stats));
  CHECK(sum_of_sizes(dir / "s") <= 2 * mib);
}

TEST_CASE("counters and sums agree after much coming and going") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(), small_options(1 * mib));
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    put(store,
        fork_at(prompt(100, seed % 7), static_cast<std::uint32_t>(seed % 100), prompt(60, seed)));
    if (seed % 11 == 0) need(store.evict(store.stats().store_bytes / 2));
  }
  const Stats stats = store.stats();
  CHECK(adds_up(stats));
  CHECK(stats.blocks_reserved == 0);
  CHECK(stats.blocks_pinned == 0);
  CHECK(stats.counters.published_blocks ==
        stats.blocks_ready + stats.counters.evicted_blocks + stats.counters.superseded_blocks);
  CHECK(need(store.verify()).damage.empty());
}
