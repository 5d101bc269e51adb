#include "catch.hpp"

#include "cold_support.hpp"
#include "support/sessions.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// Rows stand in the file as they are, so that they can be searched for.
FreezeOptions raw() {
  FreezeOptions options;
  options.compression = Compression::raw;
  return options;
}

}  // namespace

TEST_CASE("removing a path wipes its cold copies, whether it is in the segments as well or not") {
  const TempDir dir(GENERATE(Place::memory, Place::disk));
  const bool hot = GENERATE(true, false);
  const TokenList tokens = prompt(100, 1);
  const TokenList other = prompt(100, 2);
  Store store = make_cold_store(dir / "s");
  put(store, tokens);
  put(store, other);
  const std::uint64_t path = path_of(store, tokens);
  REQUIRE(freeze_all(store, raw()).blocks == 14);
  REQUIRE(files_with_row(dir / "s", tokens, 50) >= 1);
  if (hot) REQUIRE(thaw_and_get(store, tokens) == 100);
  const Freed freed = need(store.remove(std::array{path}));
  CHECK(freed.paths == 1);
  CHECK(freed.blocks == 7);
  CHECK(freed.disk_bytes > 0);
  for (const std::uint32_t token : {0u, 50u, 99u})
    CHECK(files_with_row(dir / "s", tokens, token) == 0);
  for (const std::uint32_t from : {0u, 48u, 91u})
    CHECK(files_with_label(dir / "s", tokens, from) == 0);
  CHECK(thaw_and_get(store, tokens) == 0);
  CHECK(thaw_and_get(store, other) == 100);
  CHECK(need(store.verify()).damage.empty());
  CHECK_FALSE(store.remove(std::array{path}));
}

TEST_CASE("removing a cold path keeps what cold and hot paths share with it") {
  const TempDir dir;
  const TokenList one = prompt(160, 1);
  const TokenList two = fork_at(one, 80, prompt(80, 2));
  Store store = make_cold_store(dir / "s");
  put(store, one);
  put(store, two);
  const std::uint64_t path = path_of(store, one);
  REQUIRE(freeze_all(store, raw()).blocks == 15);
  SECTION("cold") {}
  SECTION("hot") { REQUIRE(thaw_and_get(store, two) == 160); }
  CHECK(need(store.remove(std::array{path}, true)).blocks == 5);
  CHECK(need(store.remove(std::array{path})).blocks == 5);
  CHECK(thaw_and_get(store, two) == 160);
  CHECK(thaw_and_get(store, one) == 80);
  CHECK(files_with_row(dir / "s", one, 100) == 0);
  CHECK(files_with_row(dir / "s", two, 100) >= 1);
  CHECK(need(store.verify()).damage.empty());
}

TEST_CASE("a hot path keeps the beginning that only a cold one needs as well") {
  const TempDir dir;
  const TokenList one = prompt(160, 1);
  const TokenList two = fork_at(one, 80, prompt(80, 2));
  Store store = make_cold_store(dir / "s");
  put(store, one);
  REQUIRE(freeze_all(store, raw()).blocks == 10);
  put(store, two);
  CHECK(need(store.remove(std::array{path_of(store, two)})).blocks == 5);
  CHECK(thaw_and_get(store, one) == 160);
}

TEST_CASE("removing a session wipes what only it uses, cold or not, and nothing else") {
  const TempDir dir;
  const TokenList one = prompt(150, 1);
  const TokenList two = fork_at(one, 70, prompt(75, 2));
  Store store = make_cold_store(dir / "s");
  saved_session(store, "one", one);
  saved_session(store, "two", two);
  REQUIRE(freeze_all(store, raw()).blocks > 10);
  REQUIRE(store.stats().blocks_ready == 0);
  const Freed freed = need(Session::remove(store, std::array<std::string, 1>{"one"}));
  CHECK(freed.blocks > 0);
  for (const std::uint32_t token : {80u, 120u, 149u})
    CHECK(files_with_row(dir / "s", one, token) == 0);
  CHECK(files_with_label(dir / "s", one, 96) == 0);
  CHECK(thaw_and_get(store, two) == 145);
  CHECK(thaw_and_get(store, one) < 80);
  need(Session::remove(store, std::array<std::string, 1>{"two"}));
  for (const std::uint32_t token : {0u, 80u, 144u})
    CHECK(files_with_row(dir / "s", two, token) == 0);
  CHECK(need(store.verify()).damage.empty());
}

TEST_CASE(
    "a cold file that cannot be read goes with the next removal, since it may hold the rows") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  Store store = make_cold_store(dir / "s");
  put(store, tokens);
  REQUIRE(freeze_all(store, raw()).blocks == 7);
  flip_byte(cold_files(dir / "s").at(0), 300);
  put(store, tokens);
  need(store.remove(std::array{path_of(store, tokens)}));
  CHECK(files_with_row(dir / "s", tokens, 50) == 0);
  CHECK(cold_files(dir / "s").empty());
}
