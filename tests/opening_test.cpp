#include "catch.hpp"

#include <sys/resource.h>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <thread>

#include "support/disk.hpp"
#include "support/process.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

namespace {

/// Waits for a word, then opens or creates the store, stores a prompt and says the store's id.
int race_to_create(const Arguments& arguments) {
  say("ready");
  listen();
  Store store =
      need(Store::open_or_create(arguments[0], small_geometry(), small_model(), small_options()));
  put(store, prompt(40, std::stoul(arguments[1])));
  std::string id;
  for (const std::uint8_t byte : need(store.info()).uuid) id += std::to_string(byte) + ".";
  say(id);
  listen();
  return 0;
}

const RoleName race_role("race_to_create", &race_to_create);

/// Tries to open a store with few descriptors or small files allowed. Says how it went.
int open_with_limit(const Arguments& arguments) {
  const int which = arguments[1] == "files" ? RLIMIT_NOFILE : RLIMIT_FSIZE;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(which, &before);
  const rlimit limit{std::stoul(arguments[2]), before.rlim_max};
  if (::setrlimit(which, &limit) != 0) return 71;
  const Result<Store> store =
      Store::open_or_create(arguments[0], small_geometry(), small_model(), small_options());
  ::setrlimit(which, &before);
  say(store ? "opened" : std::string(name(store.error().code)) + ": " + store.error().message);
  return 0;
}

const RoleName limit_role("open_with_limit", &open_with_limit);

}  // namespace

TEST_CASE("of several processes that create one store at once, one creates and all use it") {
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    const TempDir dir;
    std::vector<Child> racers;
    for (int i = 0; i < 3; ++i)
      racers.emplace_back("race_to_create", Arguments{dir / "s", std::to_string(i)});
    for (Child& racer : racers) REQUIRE(racer.hear() == "ready");
    for (Child& racer : racers) racer.tell("go");
    const std::string id = racers[0].hear();
    CHECK(racers[1].hear() == id);
    CHECK(racers[2].hear() == id);
    const Store store = need(Store::open(dir / "s"));
    for (std::uint64_t seed = 0; seed < 3; ++seed) CHECK(get(store, prompt(40, seed)) == 40);
    CHECK(store.stats().seats_taken == 4);
  }
}

TEST_CASE("a creator killed at any moment is no obstacle for the others") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    const TempDir dir;
    Child victim("race_to_create", {dir / "s", "0"});
    Child other("race_to_create", {dir / "s", "1"});
    REQUIRE(victim.hear() == "ready");
    REQUIRE(other.hear() == "ready");
    victim.tell("go");
    other.tell("go");
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4'000));
    victim.kill();
    CHECK_FALSE(other.hear().empty());
    CHECK(get(need(Store::open(dir / "s")), prompt(40, 1)) == 40);
  }
}

TEST_CASE("threads that create one store at once all get the same one") {
  for (int round = 0; round < 20; ++round) {
    const TempDir dir;
    std::vector<std::thread> threads;
    std::vector<std::string> problems(4);
    for (std::size_t i = 0; i < problems.size(); ++i) {
      threads.emplace_back([&, i] {
        Result<Store> store =
            Store::open_or_create(dir / "s", small_geometry(), small_model(), small_options());
        if (!store) {
          problems[i] = store.error().message;
          return;
        }
        const auto stored = try_put(*store, prompt(40, i));
        if (!stored || *stored != 40) problems[i] = "not stored";
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& problem : problems) CHECK(problem == "");
    const Store store = need(Store::open(dir / "s"));
    for (std::uint64_t seed = 0; seed < 4; ++seed) CHECK(get(store, prompt(40, seed)) == 40);
  }
}

TEST_CASE("processes that open a store without control at once agree on one") {
  for (int round = 0; round < 15; ++round) {
    CAPTURE(round);
    const TempDir dir;
    {
      Store store = make_store(dir / "s");
      put(store, prompt(500, 99));
    }
    fs::remove(dir / "s/control");
    std::vector<Child> racers;
    for (int i = 0; i < 3; ++i)
      racers.emplace_back("race_to_create", Arguments{dir / "s", std::to_string(i)});
    for (Child& racer : racers) REQUIRE(racer.hear() == "ready");
    for (Child& racer : racers) racer.tell("go");
    for (Child& racer : racers) CHECK_FALSE(racer.hear().empty());
    const Store store = need(Store::open(dir / "s"));
    CHECK(get(store, prompt(500, 99)) == 500);
    CHECK(store.stats().seats_taken == 4);
    for (std::uint64_t seed = 0; seed < 3; ++seed) CHECK(get(store, prompt(40, seed)) == 40);
  }
}

TEST_CASE("control that became unusable while somebody lives is refused, never replaced") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(100, 1));
  flip_byte(dir / "s/control", 20);
  const Result<Store> other = Store::open(dir / "s");
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().message, contains("control"));
  flip_byte(dir / "s/control", 20);
  CHECK(get(need(Store::open(dir / "s")), prompt(100, 1)) == 100);
  CHECK(store.stats().seats_taken == 1);
}

TEST_CASE("no descriptors left is an error with words, and nothing is left behind") {
  const TempDir dir;
  for (int limit = 4; limit < 16; ++limit) {
    CAPTURE(limit);
    Child child("open_with_limit", {dir / "s", "files", std::to_string(limit)});
    const std::string word = child.hear();
    CHECK(child.finish() == 0);
    if (word != "opened") CHECK_THAT(word, contains("io: "));
  }
  const Store store =
      need(Store::open_or_create(dir / "s", small_geometry(), small_model(), small_options()));
}

TEST_CASE("a limit on the size of files is an error with words, and nothing is left behind") {
  const TempDir dir(GENERATE(Place::memory, Place::disk));
  for (const std::uint64_t limit : {0u, 1'000u, 50'000u, 100'000u, 200'000u}) {
    CAPTURE(limit);
    Child child("open_with_limit", {dir / "s", "size", std::to_string(limit)});
    const std::string word = child.hear();
    CHECK(child.finish() == 0);
    if (word != "opened") CHECK_THAT(word, contains("io: "));
  }
  Store store =
      need(Store::open_or_create(dir / "s", small_geometry(), small_model(), small_options()));
  put(store, prompt(100, 1));
  CHECK(get(store, prompt(100, 1)) == 100);
}
