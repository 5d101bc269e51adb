#include "catch.hpp"

#include <optional>

#include "cold_support.hpp"
#include "support/in_fork.hpp"
#include "support/process.hpp"
#include "support/sessions.hpp"

using namespace esker;
using namespace esker::test;

namespace {

Options thawing() {
  Options options;
  options.thaw = true;
  options.keep_free_bytes = 0;
  return options;
}

std::vector<std::string> key_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("key " + std::to_string(i));
  return names;
}

/// Arguments: store, seed. Freezes and thaws the same prompts as others, until told to end.
int freeze_and_thaw(const Arguments& arguments) {
  Store store = need(Store::open(arguments[0]));
  const std::uint64_t seed = std::stoul(arguments[1]);
  for (std::uint64_t i = 0; i < 60; ++i) {
    const TokenList tokens = prompt(150, (seed + i) % 3);
    if (i % 3 == 0) {
      const Result<Frozen> frozen = store.freeze(UINT64_MAX);
      if (!frozen && frozen.error().code != Errc::busy) return 2;
    }
    const std::uint32_t thawed = need(store.thaw(tokens));
    if (get(store, tokens) > 150 || thawed > 150) return 3;
  }
  return 0;
}

const RoleName freeze_and_thaw_role("freeze_and_thaw", &freeze_and_thaw);

}  // namespace

TEST_CASE("what was frozen is a miss until it is thawed, and then right to the byte") {
  const TempDir dir(GENERATE(Place::memory, Place::disk));
  const auto compression = GENERATE(Compression::raw, Compression::lz4, Compression::zstd);
  Store store = make_cold_store(dir / "s");
  put(store, prompt(100, 1));
  put(store, prompt(333, 2));
  FreezeOptions options;
  options.compression = compression;
  const Frozen frozen = freeze_all(store, options);
  CHECK(frozen.blocks == 7 + 21);
  CHECK(frozen.known_blocks == 0);
  CHECK(frozen.raw_bytes == 433 * small_geometry().token_bytes());
  CHECK(frozen.cold_bytes > 0);
  CHECK(store.stats().blocks_ready == 0);
  CHECK(get(store, prompt(100, 1)) == 0);
  CHECK(thaw_and_get(store, prompt(100, 1)) == 100);
  CHECK(thaw_and_get(store, prompt(333, 2)) == 333);
  const Stats stats = store.stats();
  CHECK(stats.blocks_ready == 28);
  CHECK(stats.blocks_reserved == 0);
  CHECK(stats.blocks_pinned == 0);
  CHECK(stats.counters.frozen_blocks == 28);
  CHECK(stats.counters.thawed_blocks == 28);
  CHECK(stats.cold_blocks == 28);
  CHECK(stats.cold_raw_bytes == 433 * small_geometry().token_bytes());
  CHECK(stats.cold_file_bytes == frozen.cold_bytes);
  CHECK(adds_up(stats));
  CHECK(need(store.verify()).damage.empty());
}

TEST_CASE("cold blocks survive closing, and another handle finds them") {
  const TempDir dir;
  {
    Store store = make_cold_store(dir / "s");
    put(store, prompt(200, 1), "lora=a");
    CHECK(freeze_all(store).blocks == 13);
  }
  std::filesystem::remove(dir / "s/control");
  Store store = need(Store::open(dir / "s"));
  need(store.evict(0));  // what a rebuild has found again
  Store other = need(Store::open(dir / "s"));
  CHECK(need(other.thaw(prompt(200, 1))) == 0);
  CHECK(thaw_and_get(other, prompt(200, 1), "lora=a") == 200);
  CHECK(get(store, prompt(200, 1), "lora=a") == 200);
}

TEST_CASE("prompts that part inside and between blocks are thawed as far as they are stored") {
  const TempDir dir;
  Store store = make_cold_store(dir / "s");
  const TokenList one = prompt(160, 1);
  const TokenList two = fork_at(one, 80, prompt(75, 2));
  const TokenList three = fork_at(one, 88, prompt(30, 3));
  for (const TokenList& tokens : {one, two, three}) put(store, tokens);
  const Frozen frozen = freeze_all(store);
  CHECK(store.stats().blocks_ready == 0);
  CHECK(frozen.blocks == store.stats().cold_blocks);
  SECTION("each whole") {
    CHECK(thaw_and_get(store, two) == 155);
    CHECK(thaw_and_get(store, one) == 160);
    CHECK(thaw_and_get(store, three) == 118);
  }
  SECTION("a beginning that ends inside a block") {
    CHECK(thaw_and_get(store, first(one, 125)) == 125);
    CHECK(get(store, one) == 128);
    CHECK(thaw_and_get(store, one) == 160);
  }
  SECTION("a prompt that goes on otherwise") {
    CHECK(thaw_and_get(store, fork_at(two, 152, prompt(500, 9))) == 152);
    CHECK(thaw_and_get(store, fork_at(one, 33, prompt(5, 9))) >= 32);
  }
  SECTION("what is hot already is not stored again") {
    put(store, first(one, 100));
    const std::uint64_t before = store.stats().counters.published_blocks;
    CHECK(thaw_and_get(store, one) == 160);
    CHECK(store.stats().counters.published_blocks - before <= 5);
  }
}

TEST_CASE("kept and pinned blocks stay, and so does what is above them") {
  const TempDir dir;
  Store store = make_cold_store(dir / "s");
  const TokenList one = prompt(160, 1);
  put(store, one);
  put(store, fork_at(one, 80, prompt(80, 2)));
  need(saved_session(store, "kept", prompt(100, 3)).keep());
  const Prefix held = store.lookup(one);
  const Frozen frozen = freeze_all(store);
  CHECK(frozen.blocks == 5);
  CHECK(frozen.pinned_blocks == 10);
  CHECK(frozen.kept_blocks + frozen.pinned_blocks >= 16);
  CHECK(get(store, one) == 160);
  CHECK(get(store, prompt(100, 3)) == 100);
  CHECK(thaw_and_get(store, fork_at(one, 80, prompt(80, 2))) == 160);
}

TEST_CASE("a block that has a cold copy is not written again") {
  const TempDir dir;
  Store store = make_cold_store(dir / "s");
  put(store, prompt(200, 1));
  CHECK(freeze_all(store).known_blocks == 0);
  const auto files = cold_files(dir / "s");
  CHECK(thaw_and_get(store, prompt(200, 1)) == 200);
  const Frozen again = freeze_all(store);
  CHECK(again.blocks == 13);
  CHECK(again.known_blocks == 13);
  CHECK(again.raw_bytes == 0);
  CHECK(cold_files(dir / "s") == files);
  CHECK(thaw_and_get(store, prompt(200, 1)) == 200);
}

TEST_CASE("only what was not used since is frozen, and no more than was asked for") {
  const TempDir dir;
  Store store = make_cold_store(dir / "s");
  put(store, prompt(100, 1));
  CHECK(need(store.freeze(0)).blocks == 0);
  FreezeOptions options;
  options.dry_run = true;
  CHECK(freeze_all(store, options).blocks == 7);
  CHECK(get(store, prompt(100, 1)) == 100);
  options.dry_run = false;
  options.most_bytes = 3 * small_geometry().block_bytes();
  CHECK(freeze_all(store, options).blocks == 3);
  CHECK(get(store, prompt(100, 1)) == 64);
  CHECK(thaw_and_get(store, prompt(100, 1)) == 100);
}

TEST_CASE("a store without a share for cold blocks says so and freezes nothing") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(100, 1));
  const Result<Frozen> frozen = store.freeze(UINT64_MAX);
  REQUIRE_FALSE(frozen);
  CHECK(frozen.error().code == Errc::invalid);
  CHECK(need(store.thaw(prompt(200, 1))) <= 100);
  CHECK_FALSE(store.prefetch(prompt(200, 2)));
  CHECK_FALSE(std::filesystem::exists(dir / "s/cold"));
}

TEST_CASE("a share that leaves no room for blocks is refused with numbers") {
  const TempDir dir;
  Options options = small_options(8 * mib);
  options.cold_bytes = 8 * mib;
  const Result<Store> store = Store::create(dir / "s", small_geometry(), small_model(), options);
  REQUIRE_FALSE(store);
  CHECK(store.error().code == Errc::invalid);
  CHECK_THAT(store.error().message, contains("cold"));
}

TEST_CASE("a handle that thaws finds by lookup, reserve and resume what is cold") {
  const TempDir dir;
  {
    Store store = make_cold_store(dir / "s");
    saved_session(store, "chat", prompt(200, 1));
  }
  Store store = need(Store::open(dir / "s", thawing()));
  CHECK(freeze_all(store).blocks == 13);
  CHECK(store.match(prompt(200, 1)) == 0);
  SECTION("by lookup") { CHECK(get(store, prompt(200, 1)) == 200); }
  SECTION("by reserve") { CHECK(need(store.reserve(prompt(200, 1))).missing().empty()); }
  SECTION("by resume") { CHECK(need(Session::resume(store, "chat")).reusable() == 200); }
  SECTION("by a longer lookup") {
    CHECK(get(store, fork_at(prompt(200, 1), 200, prompt(100, 2))) == 200);
  }
  CHECK(get(store, prompt(200, 1)) == 200);
}

TEST_CASE("key blocks are frozen, and come back to a handle that thaws") {
  const TempDir dir;
  Store store = make_cold_store(dir / "s");
  const std::vector<std::string> names = key_names(5);
  const std::vector<Key> keys(names.begin(), names.end());
  const Content content(keys, 16, "tenant");
  Reservation reservation = need(store.reserve_keys(keys, "tenant"));
  need(write_rows(reservation, small_geometry(), content, {0, 80}));
  REQUIRE(need(std::move(reservation).publish()).tokens() == 80);
  CHECK(freeze_all(store).blocks == 5);
  CHECK(store.lookup_keys(keys, "tenant").tokens() == 0);
  const Store other = need(Store::open(dir / "s", thawing()));
  CHECK(other.lookup_keys(keys, "another").tokens() == 0);
  const Prefix prefix = other.lookup_keys(keys, "tenant");
  CHECK(prefix.tokens() == 80);
  CHECK(wrong_rows(prefix, small_geometry(), content) == "");
}

TEST_CASE("a child after fork can drop the handle while the parent prefetches") {
  const TempDir dir;
  std::optional<Store> store = make_cold_store(dir / "s");
  put(*store, prompt(3'000, 1));
  REQUIRE(freeze_all(*store).blocks > 0);
  REQUIRE(store->prefetch(prompt(3'000, 1)));
  const int status = in_fork([&] {
    const bool refused = !store->thaw(prompt(3'000, 1)) && !store->prefetch(prompt(3'000, 1));
    store.reset();
    return refused ? 0 : 1;
  });
  CHECK(status == 0);
  while (store->match(prompt(3'000, 1)) < 3'000) sleep_ms(1);
  CHECK(get(*store, prompt(3'000, 1)) == 3'000);
}

TEST_CASE("processes that freeze and thaw the same prompts never see a wrong byte") {
  const TempDir dir;
  const std::string path = dir / "s";
  {
    Store store = make_cold_store(path);
    for (std::uint64_t seed = 0; seed < 3; ++seed) put(store, prompt(150, seed));
  }
  Child one("freeze_and_thaw", {path, "0"});
  Child two("freeze_and_thaw", {path, "1"});
  CHECK(one.finish() == 0);
  CHECK(two.finish() == 0);
  Store store = need(Store::open(path));
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    CHECK(thaw_and_get(store, prompt(150, seed)) == 150);
  }
  const Stats stats = store.stats();
  CHECK(stats.blocks_reserved == 0);
  CHECK(stats.blocks_pinned == 0);
  CHECK(need(store.verify()).damage.empty());
}

TEST_CASE("a handle that only looks or reads sees no cold blocks, and changes nothing") {
  const TempDir dir;
  Store store = make_cold_store(dir / "s");
  put(store, prompt(100, 1));
  REQUIRE(freeze_all(store).blocks == 7);
  for (const Access access : {Access::read, Access::inspect}) {
    Options options = thawing();
    options.access = access;
    Store other = need(Store::open(dir / "s", options));
    CHECK(get(other, prompt(100, 1)) <= 100);
    CHECK_FALSE(other.thaw(prompt(100, 1)));
    CHECK_FALSE(other.prefetch(prompt(100, 1)));
    CHECK(other.stats().cold_blocks == 7);
    CHECK(need(other.verify()).damage.empty());
    CHECK(need(other.verify()).cold_files == 1);
  }
}

TEST_CASE("destroying a store takes its cold files with it") {
  const TempDir dir;
  {
    Store store = make_cold_store(dir / "s");
    put(store, prompt(100, 1));
    REQUIRE(freeze_all(store).blocks == 7);
    CHECK(need(store.info()).cold_bytes == 4 * mib);
  }
  need(Store::destroy(dir / "s"));
  CHECK_FALSE(std::filesystem::exists(dir / "s"));
}
