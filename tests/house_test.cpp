#include "catch.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <filesystem>

#include "support/disk.hpp"
#include "support/homes.hpp"
#include "support/process.hpp"
#include "support/sessions.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t segment = 256 * kib;

/// A store of a few segments that nobody has opened for so long.
void make_old(const std::string& path, unsigned days, std::uint64_t seed = 1) {
  {
    Store store = make_store(path);
    put(store, prompt(6'000, seed));
  }
  age_store(path, days);
}

std::uint64_t disk_of(const std::string& home, const std::string& name) {
  for (const HomeStore& store : need(stores_of_home(home))) {
    if (store.name == name) return store.disk_bytes;
  }
  return 0;
}

std::uint64_t disk_of(const std::string& home) {
  std::uint64_t bytes = 0;
  for (const HomeStore& store : need(stores_of_home(home))) bytes += store.disk_bytes;
  return bytes;
}

void set_budget(const std::string& home, std::uint64_t bytes) {
  write_conf(home, "budget=" + std::to_string(bytes) + "\n");
}

/// Grows until the cap, the home or the disk says no more; all that it stored last is there.
void fill(Store& store) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    put(store, prompt(1'000, 500 + seed));
    REQUIRE(get(store, prompt(1'000, 500 + seed)) == 1'000);
  }
}

/// Arguments: store. Grows by segments once it is told to.
int run_grower(const Arguments& arguments) {
  Store store = need(Store::open(arguments[0], small_options()));
  say("ready");
  listen();
  const std::uint32_t before = store.stats().segments;
  for (std::uint64_t seed = 0; store.stats().segments < before + 2 && seed < 100; ++seed) {
    put(store, prompt(400, 900 + seed));
  }
  return store.stats().segments >= before + 2 ? 0 : 1;
}

const RoleName grower_role("grower", &run_grower);

}  // namespace

TEST_CASE("over the budget the stores that nobody opened for longest go, and no more of them",
          "[store]") {
  const TempDir dir;
  const std::string home = dir / "home";
  make_old(home + "/a", 40, 1);
  make_old(home + "/b", 50, 2);
  make_old(home + "/c", 60, 3);
  Store store = make_store(home + "/now");
  set_budget(home, disk_of(home) + segment / 2);
  const std::uint32_t before = store.stats().segments;
  for (std::uint64_t seed = 0; store.stats().segments == before; ++seed) {
    put(store, prompt(400, 100 + seed));
  }
  CHECK(exists(home + "/a"));
  CHECK(exists(home + "/b"));
  CHECK_FALSE(exists(home + "/c"));
  CHECK(told(store, EventKind::budget_removed, "c"));
  CHECK(disk_of(home) <= *need(read_home(home)).budget_bytes);
}

TEST_CASE("a store is removed for the budget neither in use, nor young, nor with a kept session",
          "[store]") {
  const TempDir dir;
  const std::string home = dir / "home";
  make_old(home + "/used", 50);
  make_old(home + "/young", 29);
  make_old(home + "/kept", 50);
  {
    Store store = need(Store::open(home + "/kept"));
    need(saved_session(store, "chat", prompt(40, 9)).keep());
  }
  age_store(home + "/kept", 50);
  const Store used = need(Store::open(home + "/used"));
  age_store(home + "/used", 50);
  Store store = make_store(home + "/now");
  const std::uint64_t before = disk_of(home);
  set_budget(home, before);
  fill(store);
  CHECK(exists(home + "/used/esker"));
  CHECK(exists(home + "/young/esker"));
  CHECK(exists(home + "/kept/esker"));
  CHECK(disk_of(home) <= before + 64 * kib);  // the grower evicts itself
  CHECK(store.stats().counters.evicted_blocks > 0);
  CHECK(told(store, EventKind::growth_failed, "budget"));
  CHECK(get(used, prompt(6'000, 1)) == 6'000);
}

TEST_CASE("no store is removed for the budget where that would not make room", "[store]") {
  const TempDir dir;
  const std::string home = dir / "home";
  make_old(home + "/old", 50);
  REQUIRE(disk_of(home, "old") < 2 * mib);
  Options options = small_options(16 * mib);
  options.segment_bytes = 4 * mib;
  Store store = make_store(home + "/now", small_geometry(), options);
  set_budget(home, disk_of(home) + mib);
  CHECK(need(enforce_budget(home)).removed.empty());
  fill(store);
  CHECK(store.stats().segments == 1);
  CHECK(told(store, EventKind::growth_failed, "budget"));
  CHECK(exists(home + "/old/esker"));
}

TEST_CASE("while another process looks after a home, nothing in it grows or is removed",
          "[store]") {
  const TempDir dir;
  const std::string home = dir / "home";
  make_old(home + "/old", 50);
  Store store = make_store(home + "/now");
  set_budget(home, disk_of(home));
  const int lock = ::open((home + "/.esker-budget.lock").c_str(), O_RDWR | O_CREAT, 0600);
  struct flock first_byte {};
  first_byte.l_type = F_WRLCK;
  first_byte.l_len = 1;
  REQUIRE(::fcntl(lock, F_OFD_SETLK, &first_byte) == 0);
  fill(store);
  ::close(lock);
  CHECK(store.stats().segments == 1);
  CHECK(told(store, EventKind::growth_failed, "home locked"));
  CHECK(exists(home + "/old/esker"));
}

TEST_CASE("opening a store is a use of it, looking after it is none", "[store]") {
  const TempDir dir;
  const std::string home = dir / "home";
  make_old(home + "/s", 50);
  const auto opened = [&] { return need(stores_of_home(home)).front().last_opened_unix_ns; };
  const std::uint64_t old = opened();
  Options options;
  options.counts_as_use = false;
  {
    Store store = need(Store::open(home + "/s", options));
    put(store, prompt(100, 7));
    need(store.evict(0));
    need(store.reap());
  }
  options.access = Access::inspect;
  static_cast<void>(need(Store::open(home + "/s", options)));
  static_cast<void>(need(inspect(home + "/s")));
  CHECK(opened() == old);
  options = Options{};
  options.access = Access::read;
  const Store store = need(Store::open(home + "/s", options));
  CHECK(opened() > old);
}

TEST_CASE("two stores that grow at once remove no more for the budget than one is enough for",
          "[store]") {
  const TempDir dir;
  const std::string home = dir / "home";
  for (const char* name : {"/a", "/b", "/c", "/d"}) make_old(home + name, 60);
  static_cast<void>(make_store(home + "/x"));
  static_cast<void>(make_store(home + "/y"));
  REQUIRE(disk_of(home, "a") > 5 * segment);  // more than both growers add
  set_budget(home, disk_of(home));
  Child x("grower", {home + "/x"});
  Child y("grower", {home + "/y"});
  REQUIRE(x.hear() == "ready");
  REQUIRE(y.hear() == "ready");
  x.tell("go");
  y.tell("go");
  CHECK(x.finish() == 0);
  CHECK(y.finish() == 0);
  CHECK(need(stores_of_home(home)).size() == 5);
  CHECK(disk_of(home) <= *need(read_home(home)).budget_bytes);
}

TEST_CASE("a budget that is lowered is enforced as far as that is possible", "[store]") {
  const TempDir dir;
  const std::string home = dir / "home";
  make_old(home + "/a", 40);
  make_old(home + "/b", 50);
  static_cast<void>(make_store(home + "/now"));
  set_budget(home, disk_of(home, "now") + disk_of(home, "a"));
  const BudgetReport dry = need(enforce_budget(home, true));
  REQUIRE(dry.removed.size() == 1);
  CHECK(dry.removed.front().name == "b");
  CHECK(exists(home + "/b/esker"));
  const BudgetReport done = need(enforce_budget(home));
  CHECK(done.removed.size() == 1);
  CHECK(done.disk_bytes == disk_of(home));
  CHECK_FALSE(exists(home + "/b"));
  set_budget(home, 1);
  CHECK(need(enforce_budget(home)).removed.size() == 1);
  CHECK(exists(home + "/now/esker"));
}

TEST_CASE("the settings of a home keep lines they do not know, and name lines that make no sense",
          "[store]") {
  const TempDir dir;
  const std::string home = dir / "home";
  CHECK_FALSE(need(read_home(home)).budget_bytes);
  write_conf(home, "# mine\nfuture=17\nkeep_free=25%\n");
  HomeSettings settings = need(read_home(home));
  CHECK(settings.keep_free == KeepFree{KeepFree::Kind::percent, 25});
  settings.budget_bytes = 123;
  need(write_home(home, settings));
  CHECK(read_conf(home) == "# mine\nfuture=17\nkeep_free=25%\nbudget=123\n");
  settings.budget_bytes.reset();
  settings.keep_free = {KeepFree::Kind::bytes, 77};
  need(write_home(home, settings));
  CHECK(read_conf(home) == "# mine\nfuture=17\nkeep_free=77\nbudget=none\n");
  CHECK((fs::status(home + "/esker.conf").permissions() & fs::perms::mask) ==
        (fs::perms::owner_read | fs::perms::owner_write));
  CHECK_FALSE(write_home(home, {std::nullopt, {KeepFree::Kind::percent, 101}}));
  for (const char* bad : {"budget=\n", "budget=-1\n", "x=1\nbudget=12 GiB\n", "keep_free=101%\n",
                          "keep_free=%\n", "budget=99999999999999999999999\n"}) {
    CAPTURE(bad);
    write_conf(home, bad);
    const Result<HomeSettings> read = read_home(home);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == Errc::corrupt);
    CHECK_THAT(read.error().message, contains("esker.conf") && contains("line"));
  }
  write_conf(home, std::string(70'000, 'x'));
  CHECK_FALSE(read_home(home));
  // Hostile bytes are lines that nobody knows.
  write_conf(home, std::string("\0\xFF=\n====\n=5\n", 12));
  CHECK(read_home(home));
}

TEST_CASE("settings that make no sense stop growth, and the store says so", "[store]") {
  const TempDir dir;
  const std::string home = dir / "home";
  write_conf(home, "budget=much\n");
  Store store = make_store(home + "/s");
  fill(store);
  CHECK(store.stats().segments == 1);
  CHECK(told(store, EventKind::growth_failed, "esker.conf"));
}

TEST_CASE("settings that others may write to are no settings", "[store]") {
  const TempDir dir;
  const std::string home = dir / "home";
  make_old(home + "/old", 90);
  set_budget(home, 1);
  fs::permissions(home + "/esker.conf", fs::perms::others_write, fs::perm_options::add);
  CHECK_FALSE(need(read_home(home)).budget_bytes);
  CHECK(need(enforce_budget(home)).removed.empty());
  Store store = make_store(home + "/s");
  fill(store);
  CHECK(store.stats().segments > 1);
  CHECK(exists(home + "/old/esker"));
}

TEST_CASE("settings of a stranger are no settings", "[store]") {
  if (!may_change_user()) return;
  constexpr uid_t stranger = 54'321;
  const TempDir dir;
  const std::string home = dir / "home";
  set_budget(home, 1);
  REQUIRE(::chown((home + "/esker.conf").c_str(), stranger, stranger) == 0);
  CHECK_FALSE(need(read_home(home)).budget_bytes);
  fs::remove(home + "/esker.conf");
  write_conf(dir / "elsewhere", "budget=1\n");
  fs::create_symlink(dir / "elsewhere/esker.conf", home + "/esker.conf");
  CHECK_FALSE(need(read_home(home)).budget_bytes);
}

TEST_CASE("what a home leaves free is a tenth, at least 10 GiB, at most half", "[store]") {
  constexpr std::uint64_t gib = 1024 * mib;
  CHECK(KeepFree{}.of(1000 * gib) == 100 * gib);
  CHECK(KeepFree{}.of(50 * gib) == 10 * gib);
  CHECK(KeepFree{}.of(8 * gib) == 4 * gib);
  CHECK(KeepFree{KeepFree::Kind::percent, 5}.of(100 * gib) == 5 * gib);
  CHECK(KeepFree{KeepFree::Kind::percent, 100}.of(100) <= 100);
  CHECK(KeepFree{KeepFree::Kind::bytes, 3}.of(1000 * gib) == 3);
}

TEST_CASE("growth stops where the disk is to be left free, by default at half of a small one",
          "[store]") {
  if (!may_mount()) return;
  const SmallDisk disk(16 * mib);
  const int who = GENERATE(0, 1, 2);
  CAPTURE(who);
  Options options = small_options(14 * mib);
  options.keep_free_bytes = who == 0 ? 6 * mib : UINT64_MAX;
  if (who == 1) write_conf(disk / "home", "keep_free=" + std::to_string(6 * mib) + "\n");
  const std::uint64_t kept = who == 2 ? 8 * mib : 6 * mib;
  Store store = make_store(disk / "home/s", small_geometry(), options);
  for (std::uint64_t seed = 0; seed < 80; ++seed) put(store, prompt(1'000, seed));
  CHECK(disk.free_bytes() >= kept);
  CHECK(disk.free_bytes() < kept + 2 * segment);
  CHECK(told(store, EventKind::growth_failed, "keep-free"));
  CHECK(get(store, prompt(1'000, 79)) == 1'000);
}

TEST_CASE("what a killed creation has left in a home is swept, and nothing else", "[store]") {
  const TempDir dir;
  const std::string home = dir / "home";
  static_cast<void>(make_store(home + "/good"));
  static_cast<void>(make_store(home + "/half"));
  fs::remove(home + "/half/esker");
  fs::create_directories(home + "/foreign/segments");
  std::vector<std::byte> junk(10);
  write_file(home + "/foreign/notes", junk);
  CHECK(need(sweep_home(home, true)) == std::vector<std::string>{"half"});
  CHECK(exists(home + "/half/lock"));
  CHECK(need(sweep_home(home)) == std::vector<std::string>{"half"});
  CHECK_FALSE(exists(home + "/half"));
  CHECK(exists(home + "/good/esker"));
  CHECK(exists(home + "/foreign/notes"));
}
