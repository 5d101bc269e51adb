#include <unistd.h>

#include <filesystem>

#include "catch.hpp"
#include "support/disk.hpp"
#include "support/process.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

namespace {

/// A worker as a supervisor starts it again and again: opens or creates the store, looks up prompt
/// 1, stores it if need be, says how much it found, and works until it is killed. Argument: store.
int work(const Arguments& arguments) {
  Store store = need(
      Store::open_or_create(arguments[0], small_geometry(), small_model(), small_options(3 * mib)));
  const std::uint32_t found = get(store, prompt(320, 1));
  put(store, prompt(320, 1));
  const Prefix held = store.lookup(prompt(320, 1));
  say(std::to_string(found));
  for (std::uint64_t seed = 2;; ++seed) need(try_put(store, prompt(160, seed % 50)));
}

const RoleName work_role("work", &work);

/// Says how many of its open descriptors belong to files below a directory.
int count_descriptors(const Arguments& arguments) {
  std::size_t count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target = fs::read_symlink(entry.path(), ignored).string();
    if (target.rfind(arguments[0], 0) == 0) ++count;
  }
  say(std::to_string(count));
  return 0;
}

const RoleName count_role("count_descriptors", &count_descriptors);

}  // namespace

TEST_CASE(
    "a worker that crashes in a loop finds its work again every time, in room for one store") {
  if (!may_mount()) return;
  const SmallDisk disk(4 * mib);
  for (int life = 0; life < 20; ++life) {
    CAPTURE(life);
    Child worker("work", {disk / "s"});
    CHECK(worker.hear() == (life == 0 ? "0" : "320"));
    sleep_ms(static_cast<unsigned>(life));
    CHECK(worker.kill() == 137);
  }
}

TEST_CASE("after everybody was killed, destroying a store gives all its space back") {
  if (!may_mount()) return;
  const SmallDisk disk(16 * mib);
  const std::uint64_t free_before = disk.free_bytes();
  for (int round = 0; round < 3; ++round) {
    std::vector<Child> workers;
    for (int i = 0; i < 3; ++i) workers.emplace_back("work", Arguments{disk / "s"});
    for (Child& worker : workers) worker.hear();
    for (Child& worker : workers) CHECK(worker.kill() == 137);
    need(Store::destroy(disk / "s"));
    CHECK(disk.free_bytes() == free_before);
  }
}

TEST_CASE("a program that is started by a user of the store inherits none of its files") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const Reservation reserved = need(store.reserve(prompt(100, 1)));
  Child child("count_descriptors", {dir.path().string()});
  CHECK(child.hear() == "0");
}

TEST_CASE("handles that come and go leave no descriptor and no mapping behind") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(100, 1));
  const auto descriptors = [] {
    const fs::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto mappings = [&] {
    const std::vector<std::byte> maps = read_file("/proc/self/maps");
    const std::string text(reinterpret_cast<const char*>(maps.data()), maps.size());
    std::size_t count = 0;
    const std::string path = dir.path().string();
    for (std::size_t at = text.find(path); at != std::string::npos; at = text.find(path, at + 1)) {
      ++count;
    }
    return count;
  };
  { const Store warm = need(Store::open(dir / "s")); }
  const auto descriptors_before = descriptors();
  const auto mappings_before = mappings();
  for (int round = 0; round < 50; ++round) {
    Store other = need(Store::open(dir / "s"));
    CHECK(get(other, prompt(100, 1)) == 100);
    (void)Store::create(dir / "s", small_geometry(), small_model());
    (void)Store::open(dir / "nothing");
    (void)inspect(dir / "s");
  }
  CHECK(descriptors() == descriptors_before);
  CHECK(mappings() == mappings_before);
}

TEST_CASE("a store is found whole under another name") {
  const TempDir dir;
  {
    Store store = make_store(dir / "old");
    put(store, prompt(320, 1));
  }
  fs::rename(dir / "old", dir / "new");
  CHECK(get(need(Store::open(dir / "new")), prompt(320, 1)) == 320);
}

TEST_CASE("a store can be renamed while it is in use") {
  const TempDir dir;
  Store store = make_store(dir / "old");
  put(store, prompt(320, 1));
  fs::rename(dir / "old", dir / "new");
  Store other = need(Store::open(dir / "new"));
  CHECK(get(other, prompt(320, 1)) == 320);
  CHECK(get(store, prompt(320, 1)) == 320);
  CHECK(other.stats().seats_taken == 2);
}

TEST_CASE("segment files never change their size or their identity") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(), small_options(2 * mib));
  put(store, prompt(3'000, 1));
  const std::string segment = segment_files(dir / "s")[0];
  const std::uintmax_t size = fs::file_size(segment);
  fs::create_hard_link(segment, dir / "same");
  for (std::uint64_t seed = 2; seed < 40; ++seed) put(store, prompt(300, seed));
  need(store.evict(0));
  need(store.trim(UINT64_MAX));
  CHECK(fs::file_size(segment) == size);
  CHECK(fs::equivalent(segment, dir / "same"));
}
