#include "catch.hpp"

#include <array>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <random>

#include "support/process.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

constexpr int wrong_bytes_status = 42;

/// Prompts that share beginnings, from a small family, so that processes meet in the same blocks.
TokenList family_prompt(std::mt19937_64& random) {
  const std::uint64_t base = random() % 4;
  const auto cut = static_cast<std::uint32_t>(random() % 12 * 13);
  return fork_at(prompt(160, base), cut,
                 prompt(static_cast<std::uint32_t>(1 + random() % 90), random() % 5));
}

/// A load that reports damage is over; anything else must be right to the byte.
void read_one(const Store& store, std::mt19937_64& random) {
  const TokenList tokens = family_prompt(random);
  const Prefix prefix = store.lookup(tokens);
  const std::string problem = wrong(prefix, store.geometry(), tokens);
  if (problem.empty()) return;
  std::cerr << "WRONG: " << problem << std::endl;
  std::_Exit(wrong_bytes_status);
}

void write_one(Store& store, std::mt19937_64& random, std::vector<Prefix>& held) {
  const TokenList tokens = family_prompt(random);
  Result<Reservation> reservation = store.reserve(tokens);
  if (!reservation) return;
  const Content content(tokens);
  if (!write_rows(*reservation, store.geometry(), content, reservation->missing())) return;
  if (random() % 8 == 0) return;
  Result<Prefix> prefix = std::move(*reservation).publish();
  if (prefix && random() % 4 == 0) held.push_back(std::move(*prefix));
  if (held.size() > 5) held.erase(held.begin());
}

/// Arguments: store, seed. Says when it begins, and works until it is killed.
int soak(const Arguments& arguments) {
  std::mt19937_64 random(std::stoul(arguments[1]));
  say("working");
  for (;;) {
    Store store = need(Store::open(arguments[0]));
    std::vector<Prefix> held;
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t dice = random() % 100;
      if (dice < 50) read_one(store, random);
      if (dice >= 50 && dice < 95) write_one(store, random, held);
      if (dice == 95) need(store.evict(store.stats().store_bytes / 2));
      if (dice == 96) (void)store.remove(std::array{path_of(store, family_prompt(random))});
      if (dice == 97) need(store.trim(UINT64_MAX));
      if (dice == 98) held.clear();
      if (dice == 99) need(store.reap());
    }
  }
}

const RoleName soak_role("soak", &soak);

/// Arguments: store, seed. Says the number of every prompt after it was published.
int acknowledge(const Arguments& arguments) {
  Store store = need(Store::open(arguments[0]));
  const std::uint64_t seed = std::stoul(arguments[1]);
  for (std::uint64_t i = 0;; ++i) {
    put(store, prompt(static_cast<std::uint32_t>(20 + i % 30), seed * 100'000 + i));
    say(std::to_string(i));
  }
}

const RoleName acknowledge_role("acknowledge", &acknowledge);

std::uint64_t kills_wanted() {
  const char* wanted = std::getenv("ESKER_TEST_KILLS");
  return wanted != nullptr ? std::stoul(wanted) : 300;
}

void check_store(const std::string& path) {
  Store store = need(Store::open(path));
  need(store.reap());
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) get(store, family_prompt(random));
  const Stats stats = store.stats();
  REQUIRE(stats.blocks_reserved == 0);
  REQUIRE(stats.blocks_pinned == 0);
  REQUIRE(stats.seats_taken == 1);
  REQUIRE(adds_up(stats));
  REQUIRE(stats.counters.bad_blocks == 0);
  REQUIRE(stats.counters.degraded_misses == 0);
  put(store, prompt(300, 12345));
  REQUIRE(get(store, prompt(300, 12345)) == 300);
  REQUIRE(need(store.verify()).damage.empty());
}

}  // namespace

TEST_CASE("processes killed at random never leave a wrong byte, a leak or a hang") {
  const TempDir dir(GENERATE(Place::memory, Place::disk));
  const std::string path = dir / "s";
  { const Store store = make_store(path, small_geometry(), small_options(1 * mib)); }
  std::mt19937_64 random(GENERATE(1U, 2U));
  std::uint64_t seed = 0;
  const auto start = [&] { return Child("soak", {path, std::to_string(++seed)}); };
  std::vector<Child> workers;
  for (int i = 0; i < 4; ++i) workers.push_back(start());
  for (std::uint64_t kills = 0; kills < kills_wanted() / 4; ++kills) {
    Child& victim = workers[random() % workers.size()];
    victim.hear();
    sleep_ms(static_cast<unsigned>(random() % 25));
    if (random() % 4 == 0) victim.stop();
    sleep_ms(static_cast<unsigned>(random() % 4));
    REQUIRE(victim.kill() == 128 + SIGKILL);
    victim = start();
    if (kills % 40 == 39) {
      for (Child& worker : workers) REQUIRE(worker.kill() == 128 + SIGKILL);
      check_store(path);
      for (Child& worker : workers) worker = start();
    }
  }
  sleep_ms(50);
  for (Child& worker : workers) {
    ::kill(worker.pid(), SIGTERM);
    CHECK(worker.finish() == 128 + SIGTERM);
  }
  check_store(path);
}

TEST_CASE("what was acknowledged before a kill is found whole afterwards") {
  const TempDir dir;
  const std::string path = dir / "s";
  { const Store store = make_store(path, small_geometry(), small_options(64 * mib)); }
  std::mt19937_64 random(3);
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    Child writer("acknowledge", {path, std::to_string(seed)});
    writer.hear();
    sleep_ms(static_cast<unsigned>(random() % 20));
    ::kill(writer.pid(), SIGKILL);
    std::uint64_t acknowledged = 0;
    while (const auto line = writer.hear_or_end()) acknowledged = std::stoul(*line);
    writer.finish();
    const Store store = need(Store::open(path));
    CAPTURE(seed, acknowledged);
    std::uint64_t lost = 0;
    for (std::uint64_t i = 0; i <= acknowledged; ++i) {
      const auto length = static_cast<std::uint32_t>(20 + i % 30);
      if (get(store, prompt(length, seed * 100'000 + i)) != length) ++lost;
    }
    CHECK(lost <= store.stats().counters.displaced_hints);
  }
}

TEST_CASE("a reader that holds a prefix keeps its bytes while others are killed around it") {
  const TempDir dir;
  const std::string path = dir / "s";
  Store store = make_store(path, small_geometry(), small_options(1 * mib));
  const TokenList tokens = prompt(160, 777);
  put(store, tokens);
  const Prefix held = store.lookup(tokens);
  REQUIRE(held.tokens() == 160);
  const auto evicted = [&] { return store.stats().counters.evicted_blocks; };
  for (std::uint64_t seed = 1; seed <= 30 || evicted() == 0; ++seed) {
    REQUIRE(seed < 2'000);
    Child worker("soak", {path, std::to_string(seed)});
    worker.hear();
    sleep_ms(20);
    REQUIRE(worker.kill() == 128 + SIGKILL);
    REQUIRE(wrong(held, store.geometry(), tokens) == "");
  }
}

TEST_CASE("dead processes are cleaned up by whoever needs room, without being asked") {
  const TempDir dir;
  const std::string path = dir / "s";
  { const Store store = make_store(path, small_geometry(), small_options(1 * mib)); }
  Child worker("soak", {path, "1"});
  worker.hear();
  sleep_ms(100);
  Store store = need(Store::open(path));
  worker.kill();
  for (std::uint64_t seed = 0; seed < 100; ++seed) put(store, prompt(160, seed));
  CHECK(store.stats().blocks_reserved == 0);
  const Store another = need(Store::open(path));
  need(store.reap());
  CHECK(store.stats().seats_taken == 2);
}
