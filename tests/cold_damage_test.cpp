#include "catch.hpp"

#include <random>

#include "cold_support.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

namespace {

bool told_of_damage(const Store& store) {
  for (const Event& event : store.events()) {
    if (event.kind == EventKind::cold_damaged) return true;
  }
  return false;
}

}  // namespace

TEST_CASE(
    "a flipped byte anywhere in a cold file is never a wrong byte, and verify names the file") {
  const TempDir dir;
  const std::string path = dir / "s";
  {
    Store store = make_cold_store(path);
    put(store, prompt(300, 1));
    put(store, prompt(300, 2));
    REQUIRE(freeze_all(store).blocks == 38);
  }
  const auto files = cold_files(path);
  REQUIRE(files.size() == 1);
  const std::vector<std::byte> good = read_file(files[0]);
  std::mt19937_64 random(1);
  for (int round = 0; round < 150; ++round) {
    write_file(files[0], good);
    const std::uint64_t offset = round < 60 ? random() % 2'000 : random() % good.size();
    CAPTURE(offset);
    flip_byte(files[0], offset, 1U << random() % 8);
    Store store = need(Store::open(path));
    const std::uint32_t one = thaw_and_get(store, prompt(300, 1));
    const std::uint32_t two = thaw_and_get(store, prompt(300, 2));
    const VerifyReport report = need(store.verify());
    REQUIRE(report.damage.size() > 0);
    CHECK_THAT(report.damage[0].file + report.damage[0].what, contains("cold/"));
    CHECK(one + two <= 600);
    CHECK(store.stats().blocks_reserved == 0);
    need(store.evict(0));
    CHECK(store.stats().blocks_ready == 0);
  }
  write_file(files[0], good);
  Store store = need(Store::open(path));
  CHECK(thaw_and_get(store, prompt(300, 1)) == 300);
}

TEST_CASE("rows that do not check end the path, are told by an event, and are not served again") {
  const TempDir dir;
  Store store = make_cold_store(dir / "s");
  put(store, prompt(300, 1));
  FreezeOptions options;
  options.compression = Compression::raw;
  REQUIRE(freeze_all(store, options).blocks == 19);
  const auto files = cold_files(dir / "s");
  const std::vector<std::byte> good = read_file(files.at(0));
  const auto row = Content(prompt(300, 1)).rows(small_geometry(), 1, Plane::key, {150, 151});
  const auto found = std::search(good.begin(), good.end(), row.begin(), row.end());
  REQUIRE(found != good.end());
  flip_byte(files[0], static_cast<std::uint64_t>(found - good.begin()));
  const std::uint32_t thawed = thaw_and_get(store, prompt(300, 1));
  CHECK(thawed < 150);
  CHECK(told_of_damage(store));
  write_file(files[0], good);
  CHECK(thaw_and_get(store, prompt(300, 1)) == thawed);
  CHECK(fs::exists(files[0]));
  put(store, prompt(300, 1));
  CHECK(get(store, prompt(300, 1)) == 300);
}

TEST_CASE("a cold file that is cut off at any place, or empty, is a miss") {
  const TempDir dir;
  const std::string path = dir / "s";
  {
    Store store = make_cold_store(path);
    put(store, prompt(300, 1));
    REQUIRE(freeze_all(store).blocks == 19);
  }
  const auto files = cold_files(path);
  const std::vector<std::byte> good = read_file(files.at(0));
  for (std::size_t bytes = 0; bytes < good.size(); bytes += good.size() / 37 + 1) {
    CAPTURE(bytes);
    fs::resize_file(files[0], bytes);
    Store store = need(Store::open(path));
    CHECK(thaw_and_get(store, prompt(300, 1)) == 0);
    CHECK(need(store.verify()).damage.size() > 0);
    write_file(files[0], good);
  }
}

TEST_CASE("cold files of another store are not believed, and those that vanish are a miss") {
  const TempDir dir;
  Store one = make_cold_store(dir / "one");
  Store two = make_cold_store(dir / "two");
  put(one, prompt(100, 1));
  REQUIRE(freeze_all(one).blocks == 7);
  put(two, prompt(100, 2));
  REQUIRE(freeze_all(two).blocks == 7);
  for (const std::string& file : cold_files(dir / "one")) {
    fs::copy_file(file, dir / "two/cold" / fs::path(file).filename());
  }
  CHECK(thaw_and_get(two, prompt(100, 1)) == 0);
  CHECK(thaw_and_get(two, prompt(100, 2)) == 100);
  CHECK(need(two.verify()).damage.size() == 1);
  for (const std::string& file : cold_files(dir / "one")) fs::remove(file);
  CHECK(thaw_and_get(one, prompt(100, 1)) == 0);
  CHECK(one.stats().cold_files == 0);
  put(one, prompt(100, 1));
  CHECK(freeze_all(one).known_blocks == 0);
}

TEST_CASE("files in cold/ that are not Esker's are left alone") {
  const TempDir dir;
  Store store = make_cold_store(dir / "s");
  put(store, prompt(100, 1));
  REQUIRE(freeze_all(store).blocks == 7);
  write_file(dir / "s/cold/notes.txt", std::vector<std::byte>(10));
  fs::create_directory(dir / "s/cold/0123456789abcdef.esnap");
  fs::create_symlink("/etc/hostname", dir / "s/cold/0123456789abcdee.esnap");
  CHECK(thaw_and_get(store, prompt(100, 1)) == 100);
  CHECK(freeze_all(store).known_blocks == 7);
  CHECK(fs::exists(dir / "s/cold/notes.txt"));
}

TEST_CASE("damage of a block that is to be frozen does not get into a cold file") {
  const TempDir dir;
  Store store = make_cold_store(dir / "s");
  const TokenList tokens = prompt(160, 1);
  put(store, tokens);
  const DiskBlock block = find_block(dir / "s", tokens, 64);
  flip_byte(block.file, row_offset(block, 16, 1, Plane::key, 3));
  const Frozen frozen = freeze_all(store);
  CHECK(frozen.blocks == 9);
  CHECK(store.stats().counters.bad_blocks == 1);
  CHECK(thaw_and_get(store, tokens) == 64);
  put(store, first(tokens, 80));
  CHECK(thaw_and_get(store, tokens) == 160);
}
