#include "catch.hpp"

#include <array>
#include <filesystem>

#include "support/disk.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

TEST_CASE("removing a path wipes its rows and its tokens from the disk") {
  const TempDir dir(GENERATE(Place::memory, Place::disk));
  const TokenList tokens = prompt(100, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  put(store, prompt(100, 2));
  for (const std::uint32_t token : {0u, 50u, 99u})
    CHECK(files_with_row(dir / "s", tokens, token) == 1);
  const Freed freed = need(store.remove(std::array{path_of(store, tokens)}));
  CHECK(freed.paths == 1);
  CHECK(freed.blocks == 7);
  CHECK(freed.pinned_blocks == 0);
  for (const std::uint32_t token : {0u, 50u, 99u})
    CHECK(files_with_row(dir / "s", tokens, token) == 0);
  for (const std::uint32_t from : {0u, 48u, 91u})
    CHECK(files_with_label(dir / "s", tokens, from) == 0);
  CHECK(get(store, tokens) == 0);
  CHECK(get(store, prompt(100, 2)) == 100);
  CHECK(store.stats().counters.removed_blocks == 7);
  CHECK(need(store.verify()).damage.empty());
}

TEST_CASE(
    "a removed path is not found by any handle, nor after opening anew, until it is stored again") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  {
    Store store = make_store(dir / "s");
    const Store other = need(Store::open(dir / "s"));
    put(store, tokens);
    CHECK(get(other, tokens) == 100);
    need(store.remove(std::array{path_of(store, tokens)}));
    CHECK(get(store, tokens) == 0);
    CHECK(get(other, tokens) == 0);
  }
  if (GENERATE(true, false)) std::filesystem::remove(dir / "s/control");
  Store store = need(Store::open(dir / "s"));
  CHECK(get(store, tokens) == 0);
  put(store, tokens);
  CHECK(get(store, tokens) == 100);
}

TEST_CASE("removing a path keeps what other paths share with it") {
  const TempDir dir;
  const TokenList one = prompt(160, 1);
  const TokenList two = fork_at(one, 80, prompt(80, 2));
  Store store = make_store(dir / "s");
  put(store, one);
  put(store, two);
  CHECK(need(store.remove(std::array{path_of(store, one)})).blocks == 5);
  CHECK(get(store, one) == 80);
  CHECK(get(store, two) == 160);
  CHECK(files_with_row(dir / "s", one, 100) == 0);
  CHECK(files_with_row(dir / "s", one, 50) == 1);
}

TEST_CASE("removing an inner node takes everything below it") {
  const TempDir dir;
  const TokenList one = prompt(160, 1);
  const TokenList two = fork_at(one, 80, prompt(80, 2));
  Store store = make_store(dir / "s");
  put(store, one);
  put(store, two);
  need(store.remove(std::array{path_of(store, first(one, 80))}));
  CHECK(get(store, one) == 0);
  CHECK(get(store, two) == 0);
  CHECK(store.stats().blocks_ready == 0);
}

TEST_CASE("removing a name that is not there removes nothing") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(100, 1));
  const Result<Freed> freed = store.remove(std::array<std::uint64_t, 1>{12345});
  if (freed) CHECK(freed->blocks == 0);
  CHECK(get(store, prompt(100, 1)) == 100);
}

TEST_CASE("what a reader pins is gone for others at once, and wiped when it has let go") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  Prefix prefix = store.lookup(tokens);
  const Freed freed = need(store.remove(std::array{prefix.path()}));
  CHECK(freed.pinned_blocks == 7);
  CHECK(store.match(tokens) == 0);
  CHECK(wrong(prefix, store.geometry(), tokens) == "");
  CHECK(files_with_row(dir / "s", tokens, 50) == 1);
  prefix = {};
  SECTION("by trim") { need(store.trim(UINT64_MAX)); }
  SECTION("by the next remove") {
    put(store, prompt(40, 2));
    need(store.remove(std::array{path_of(store, prompt(40, 2))}));
  }
  CHECK(files_with_row(dir / "s", tokens, 50) == 0);
  CHECK(files_with_label(dir / "s", tokens, 48) == 0);
}

TEST_CASE("trim returns the disk space of free blocks, and they are usable again") {
  const TempDir dir(GENERATE(Place::memory, Place::disk));
  Store store = make_store(dir / "s");
  put(store, prompt(8'000, 1));
  put(store, prompt(100, 2));
  const std::uint64_t before = allocated_bytes(dir / "s");
  const Freed removed = need(store.remove(std::array{path_of(store, prompt(8'000, 1))}));
  const Freed trimmed = need(store.trim(UINT64_MAX));
  const std::uint64_t after = allocated_bytes(dir / "s");
  CHECK(removed.blocks == 500);
  CHECK(removed.disk_bytes + trimmed.disk_bytes > 0);
  CHECK(before - after > 500 * small_geometry().block_bytes() / 2);
  CHECK(get(store, prompt(100, 2)) == 100);
  put(store, prompt(8'000, 3));
  CHECK(get(store, prompt(8'000, 3)) == 8'000);
  CHECK(need(store.verify()).damage.empty());
}

TEST_CASE("trim with room enough on the disk returns nothing") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(100, 1));
  need(store.evict(0));
  CHECK(need(store.trim(0)).disk_bytes == 0);
}

TEST_CASE("trim never touches what is stored or pinned") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(500, 1));
  put(store, prompt(500, 2));
  const Prefix pinned = store.lookup(prompt(500, 2));
  need(store.remove(std::array{pinned.path()}));
  need(store.trim(UINT64_MAX));
  CHECK(get(store, prompt(500, 1)) == 500);
  CHECK(wrong(pinned, store.geometry(), prompt(500, 2)) == "");
}

TEST_CASE("removing a path also wipes evicted and superseded copies of it, for good") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  {
    Store store = make_store(dir / "s");
    put(store, TokenList(tokens.begin(), tokens.begin() + 90));  // a shorter last block
    put(store, tokens);
    need(store.evict(0));
    put(store, tokens);
    need(store.remove(std::array{path_of(store, tokens)}));
    for (const std::uint32_t token : {0u, 50u, 85u, 99u})
      CHECK(files_with_row(dir / "s", tokens, token) == 0);
    CHECK(files_with_label(dir / "s", tokens, 48) == 0);
  }
  std::filesystem::remove(dir / "s/control");  // what a reboot amounts to
  const Store store = need(Store::open(dir / "s"));
  CHECK(need(store.paths()).empty());
  CHECK(get(store, tokens) == 0);
}
