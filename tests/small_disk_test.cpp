#include "catch.hpp"

#include <array>
#include <filesystem>

#include "support/disk.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

/// File systems that are full, or become so. A mapping of a sparse file would end the process with
/// SIGBUS here; Catch2 reports that as a failure.

namespace {

Options large_options() {
  Options options = small_options(64 * mib);
  options.segment_bytes = 1 * mib;
  return options;
}

void fill_disk(const std::string& path, std::uint64_t leave_bytes, const SmallDisk& disk) {
  const std::uint64_t free_bytes = disk.free_bytes();
  if (free_bytes <= leave_bytes) return;
  const std::vector<std::byte> junk(free_bytes - leave_bytes);
  write_file(path, junk);
}

}  // namespace

TEST_CASE(
    "on a disk of any small size a store is refused with words or works, and gives space back") {
  if (!may_mount()) return;
  const std::uint64_t size = GENERATE(range(1U, 14U)) * mib / 2 + mib / 2;
  CAPTURE(size);
  const SmallDisk disk(size);
  const std::uint64_t free_before = disk.free_bytes();
  {
    Result<Store> store =
        Store::create(disk / "s", small_geometry(), small_model(), large_options());
    if (!store) {
      CHECK_FALSE(store.error().message.empty());
      CHECK_THAT(store.error().message, contains(disk.path()));
      CHECK(disk.free_bytes() == free_before);
      CHECK_FALSE(fs::exists(disk / "s/esker"));
      return;
    }
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Result<std::uint32_t> stored = try_put(*store, prompt(400, seed));
      if (!stored) {
        CHECK(stored.error().code == Errc::io);
        CHECK(get(*store, prompt(400, seed)) == 0);
        continue;
      }
      CHECK(get(*store, prompt(400, seed)) == *stored);
      if (seed > 0) get(*store, prompt(400, seed - 1));
    }
    CHECK(adds_up(store->stats()));
  }
  need(Store::destroy(disk / "s"));
  CHECK(disk.free_bytes() == free_before);
}

TEST_CASE("a store that cannot grow evicts instead, and old entries are served on") {
  if (!may_mount()) return;
  const SmallDisk disk(8 * mib);
  Store store = need(Store::create(disk / "s", small_geometry(), small_model(), large_options()));
  put(store, prompt(1'000, 0));
  fill_disk(disk / "junk", 100 * kib, disk);
  const std::uint64_t free_before = disk.free_bytes();
  CHECK(get(store, prompt(1'000, 0)) == 1'000);
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    const std::uint32_t stored = need(try_put(store, prompt(400, seed)));
    CHECK(stored == 400);
    CHECK(get(store, prompt(400, seed)) == stored);
  }
  CHECK(store.stats().counters.evicted_blocks > 0);
  CHECK(disk.free_bytes() == free_before);
  bool told = false;
  for (const Event& event : store.events()) told = told || event.kind == EventKind::growth_failed;
  CHECK(told);
}

TEST_CASE("rows can be written when others have filled the disk: the room was taken before") {
  if (!may_mount()) return;
  const SmallDisk disk(8 * mib);
  const TokenList tokens = prompt(1'000, 1);
  Store store = need(Store::create(disk / "s", small_geometry(), small_model(), large_options()));
  Reservation reservation = need(store.reserve(tokens));
  REQUIRE(reservation.tokens() == 1'000);
  fill_disk(disk / "junk", 0, disk);
  need(write_rows(reservation, store.geometry(), Content(tokens), {0, 1'000}));
  CHECK(need(std::move(reservation).publish()).tokens() == 1'000);
  CHECK(get(store, tokens) == 1'000);
}

TEST_CASE("a store opens on a full disk and serves what it holds") {
  if (!may_mount()) return;
  const SmallDisk disk(8 * mib);
  {
    Store store = need(Store::create(disk / "s", small_geometry(), small_model(), large_options()));
    put(store, prompt(1'000, 1));
  }
  fill_disk(disk / "junk", 0, disk);
  const Store store = need(Store::open(disk / "s"));
  CHECK(get(store, prompt(1'000, 1)) == 1'000);
}

TEST_CASE("a control file that finds no room is an error with words, and harms nothing") {
  if (!may_mount()) return;
  const SmallDisk disk(8 * mib);
  {
    Store store = need(Store::create(disk / "s", small_geometry(), small_model(), large_options()));
    put(store, prompt(1'000, 1));
  }
  fs::remove(disk / "s/control");
  fill_disk(disk / "junk", 0, disk);
  const Result<Store> refused = Store::open(disk / "s");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::io);
  CHECK_THAT(refused.error().message, contains("control"));
  fs::remove(disk / "junk");
  CHECK(get(need(Store::open(disk / "s")), prompt(1'000, 1)) == 1'000);
}

TEST_CASE("a full disk after trim is an error of write, and the block is a miss") {
  if (!may_mount()) return;
  const SmallDisk disk(8 * mib);
  Store store = need(Store::create(disk / "s", small_geometry(), small_model(), large_options()));
  put(store, prompt(2'000, 1));
  put(store, prompt(100, 2));
  need(store.remove(std::array{path_of(store, prompt(2'000, 1))}));
  need(store.trim(UINT64_MAX));
  fill_disk(disk / "junk", 0, disk);
  const Result<std::uint32_t> stored = try_put(store, prompt(2'000, 3));
  if (stored) {
    CHECK(get(store, prompt(2'000, 3)) == *stored);
  } else {
    CHECK(stored.error().code == Errc::io);
    CHECK(store.match(prompt(2'000, 3)) == 0);
  }
  CHECK(get(store, prompt(100, 2)) == 100);
  CHECK(store.stats().blocks_reserved == 0);
  fs::remove(disk / "junk");
  put(store, prompt(2'000, 3));
  CHECK(get(store, prompt(2'000, 3)) == 2'000);
  CHECK(need(store.verify()).damage.empty());
}

TEST_CASE("trim keeps the wanted number of bytes of the disk free and no more") {
  if (!may_mount()) return;
  const SmallDisk disk(16 * mib);
  Options options = large_options();
  options.capacity_bytes = 14 * mib;
  Store store = need(Store::create(disk / "s", small_geometry(), small_model(), options));
  for (std::uint64_t seed = 0; seed < 10; ++seed) put(store, prompt(4'000, seed));
  const std::uint64_t free_before = disk.free_bytes();
  need(store.evict(0));
  const std::uint64_t wanted = free_before + 2 * mib;
  need(store.trim(wanted));
  CHECK(disk.free_bytes() >= wanted);
  CHECK(disk.free_bytes() < wanted + 2 * mib);
}

TEST_CASE("without a capacity a store takes a quarter of what is free") {
  if (!may_mount()) return;
  const SmallDisk disk(64 * mib);
  const std::uint64_t free_before = disk.free_bytes();
  Options options = small_options(0);
  const Store store = need(Store::create(disk / "s", small_geometry(), small_model(), options));
  const std::uint64_t capacity = need(store.info()).capacity_bytes;
  CHECK(capacity <= free_before / 4);
  CHECK(capacity > free_before / 4 - 2 * mib);
}

TEST_CASE("without a capacity a store on a large disk takes at most 64 GiB") {
  if (!may_mount()) return;
  const SmallDisk disk(std::uint64_t{1} << 40);
  const Geometry geometry = need(Geometry::uniform(8, 8, 128, "f16", 256));
  const Store store = need(Store::create(disk / "s", geometry, small_model()));
  CHECK(need(store.info()).capacity_bytes == std::uint64_t{64} << 30);
}

TEST_CASE("a store larger than its disk says how large both are, or serves as far as it can") {
  if (!may_mount()) return;
  const SmallDisk disk(16 * mib);
  Options options;
  options.capacity_bytes = 1024 * mib;
  const Result<Store> store = Store::create(disk / "s", small_geometry(), small_model(), options);
  if (!store) {
    CHECK_THAT(store.error().message, contains("MiB") || contains("bytes"));
    return;
  }
  Store open = need(Store::open(disk / "s"));
  const Result<std::uint32_t> stored = try_put(open, prompt(100, 1));
  if (stored) CHECK(get(open, prompt(100, 1)) == *stored);
}
