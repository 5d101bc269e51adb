#include "catch.hpp"

#include "cold_support.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

namespace {

std::uint64_t cold_bytes_on_disk(const std::string& store) {
  std::uint64_t bytes = 0;
  for (const std::string& file : cold_files(store)) bytes += fs::file_size(file);
  return bytes;
}

}  // namespace

TEST_CASE("cold files never take more than their share, and the least recently used go first") {
  const TempDir dir;
  constexpr std::uint64_t share = 600 * kib;
  Store store = make_cold_store(dir / "s", cold_options(share));
  std::uint64_t dropped = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    put(store, prompt(400, seed));
    dropped += freeze_all(store).dropped_blocks;
    CHECK(cold_bytes_on_disk(dir / "s") <= share);
    CHECK(store.stats().blocks_ready == 0);
    if (seed > 0) CHECK(thaw_and_get(store, prompt(400, 0)) == 400);  // which makes it fresh
    if (seed > 0) freeze_all(store);
  }
  CHECK(dropped > 0);
  CHECK(thaw_and_get(store, prompt(400, 0)) == 400);
  CHECK(thaw_and_get(store, prompt(400, 11)) == 400);
  CHECK(thaw_and_get(store, prompt(400, 1)) < 400);
  CHECK(need(store.verify()).damage.empty());
}

TEST_CASE("a freeze that is larger than the share keeps the share and loses nothing to the cap") {
  const TempDir dir;
  constexpr std::uint64_t share = 300 * kib;
  Store store = make_cold_store(dir / "s", cold_options(share));
  for (std::uint64_t seed = 0; seed < 8; ++seed) put(store, prompt(1'000, seed));
  const Frozen frozen = freeze_all(store);
  CHECK(frozen.dropped_blocks > 0);
  CHECK(cold_bytes_on_disk(dir / "s") <= share);
  CHECK(store.stats().cold_blocks > 0);
  std::uint32_t found = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) found += thaw_and_get(store, prompt(1'000, seed));
  CHECK(found <= 8'000);
}

TEST_CASE("a share that holds not one block is an error with numbers, and the block stays") {
  const TempDir dir;
  Store store = make_cold_store(dir / "s", cold_options(1'000));
  put(store, prompt(16, 1));
  const Result<Frozen> frozen = store.freeze(UINT64_MAX);
  REQUIRE_FALSE(frozen);
  CHECK(frozen.error().code == Errc::full);
  CHECK(get(store, prompt(16, 1)) == 16);
  CHECK(cold_files(dir / "s").empty());
}

TEST_CASE("what the evictor takes from a handle that asked for it becomes cold") {
  const TempDir dir;
  Options options = small_options(4 * mib);
  options.cold_bytes = 2 * mib;
  options.keep_free_bytes = 0;
  options.freeze_evicted = GENERATE(true, false);
  Store store = make_cold_store(dir / "s", options);
  for (std::uint64_t seed = 0; seed < 30; ++seed) put(store, prompt(400, seed));
  const Stats stats = store.stats();
  CHECK((stats.cold_blocks > 0) == options.freeze_evicted);
  CHECK((stats.counters.frozen_blocks > 0) == options.freeze_evicted);
  CHECK(cold_bytes_on_disk(dir / "s") <= options.cold_bytes);
  CHECK(adds_up(stats));
  std::uint32_t more = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const std::uint32_t hot = get(store, prompt(400, seed));
    more += thaw_and_get(store, prompt(400, seed)) - hot;
  }
  CHECK((more > 0) == options.freeze_evicted);
  CHECK(need(store.verify()).damage.empty());
}

TEST_CASE("a full disk during a freeze is an error with words, and every block stays") {
  if (!may_mount()) return;
  const SmallDisk disk(12 * mib);
  Options options = cold_options(2 * mib);
  options.capacity_bytes = 8 * mib;
  Store store = make_cold_store(disk / "s", options);
  put(store, prompt(4'000, 1));
  const std::uint64_t free_bytes = disk.free_bytes();
  REQUIRE(free_bytes > 100 * kib);
  write_file(disk / "junk", std::vector<std::byte>(free_bytes - 100 * kib));
  const Result<Frozen> frozen = store.freeze(UINT64_MAX);
  REQUIRE_FALSE(frozen);
  CHECK(frozen.error().code == Errc::io);
  for (const auto& entry : fs::recursive_directory_iterator(disk / "s")) {
    CHECK_FALSE(entry.path().filename().string().starts_with("."));
  }
  const std::uint32_t hot = get(store, prompt(4'000, 1));
  fs::remove(disk / "junk");
  CHECK(thaw_and_get(store, prompt(4'000, 1)) == 4'000);
  CHECK(hot > 0);
  CHECK(freeze_all(store).blocks == 250);
  CHECK(thaw_and_get(store, prompt(4'000, 1)) == 4'000);
}
