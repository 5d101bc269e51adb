#include "catch.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <filesystem>
#include <optional>

#include "support/disk.hpp"
#include "support/in_fork.hpp"
#include "support/process.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

void crowd(Store& store) {
  for (std::uint64_t seed = 100; seed < 160; ++seed) need(try_put(store, prompt(160, seed)));
  REQUIRE(store.stats().counters.evicted_blocks > 0);
}

/// Opens a store, forks a child that lives on, pins a path and waits to be killed. Argument: store.
int fork_and_wait(const Arguments& arguments) {
  Store store = need(Store::open(arguments[0]));
  const Prefix pinned = store.lookup(prompt(160, 1));
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  say(std::to_string(child));
  listen();
  return 0;
}

const RoleName fork_and_wait_role("fork_and_wait", &fork_and_wait);

/// Loses all its descriptors as a daemon does, opens other files in their place, and goes on.
int close_everything(const Arguments& arguments) {
  Store store = need(Store::open(arguments[0]));
  put(store, prompt(50, 2));
  for (int file = 3; file < 4'096; ++file) ::close(file);
  for (int i = 0; i < 200; ++i) {
    if (::open(arguments[1].c_str(), O_RDWR) < 0) return 71;
  }
  if (get(store, prompt(50, 2)) != 50) return 72;
  const Result<std::uint32_t> stored = try_put(store, prompt(50, 3));
  say(stored ? "stored" : std::string(name(stored.error().code)));
  listen();
  return 0;
}

const RoleName close_everything_role("close_everything", &close_everything);

}  // namespace

TEST_CASE("after a fork the child's handle says so, and finds nothing") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(160, 1));
  CHECK(in_fork([&] {
          if (store.match(prompt(160, 1)) != 0) return 1;
          if (!store.lookup(prompt(160, 1)).empty()) return 2;
          const Result<Reservation> reservation = store.reserve(prompt(50, 2));
          if (reservation || reservation.error().code != Errc::forked) return 3;
          const Result<Freed> freed = store.evict(0);
          if (freed || freed.error().code != Errc::forked) return 4;
          const Result<std::uint32_t> reaped = store.reap();
          if (reaped || reaped.error().code != Errc::forked) return 5;
          if (store.paths() || store.verify() || store.sync()) return 6;
          return 0;
        }) == 0);
  CHECK(get(store, prompt(160, 1)) == 160);
}

TEST_CASE("what a forked child destroys or keeps changes nothing for its parent") {
  const TempDir dir;
  std::optional<Store> store = make_store(dir / "s", small_geometry(), small_options(1 * mib));
  put(*store, prompt(160, 1));
  std::optional<Prefix> prefix = store->lookup(prompt(160, 1));
  std::optional<Reservation> reservation = need(store->reserve(prompt(50, 2)));
  CHECK(in_fork([&] {
          prefix.reset();
          reservation.reset();
          store.reset();
          return 0;
        }) == 0);
  CHECK(store->stats().blocks_pinned >= 10);
  CHECK(store->stats().blocks_reserved == 4);
  CHECK(store->stats().seats_taken == 1);
  Store other = need(Store::open(dir / "s"));
  crowd(other);
  CHECK(wrong(*prefix, store->geometry(), prompt(160, 1)) == "");
  need(write_rows(*reservation, store->geometry(), Content(prompt(50, 2)), {0, 50}));
  CHECK(need(std::move(*reservation).publish()).tokens() == 50);
}

TEST_CASE("a child opens the store for itself and works beside its parent") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(160, 1));
  CHECK(in_fork([&] {
          Store mine = need(Store::open(dir / "s"));
          if (get(mine, prompt(160, 1)) != 160) return 1;
          put(mine, prompt(50, 2));
          return mine.stats().seats_taken == 2 ? 0 : 2;
        }) == 0);
  CHECK(get(store, prompt(50, 2)) == 50);
  need(store.reap());
  CHECK(store.stats().seats_taken == 1);
}

TEST_CASE("the bytes of a view are not there in a child: it faults rather than read others'") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(160, 1));
  const Prefix prefix = store.lookup(prompt(160, 1));
  const Runs runs = need(prefix.view(0, Plane::key));
  const std::byte* first_byte = runs.begin()->bytes.data();
  const int status = in_fork(
      [&] { return *static_cast<const volatile std::byte*>(first_byte) == std::byte{0} ? 0 : 1; });
  CHECK(status > 1);
}

TEST_CASE("a process is dead when it is killed, though a child that it forked lives on") {
  const TempDir dir;
  const std::string path = dir / "s";
  Store store = make_store(path);
  put(store, prompt(160, 1));
  Child parent("fork_and_wait", {path});
  const auto orphan = static_cast<pid_t>(std::stol(parent.hear()));
  CHECK(store.stats().seats_taken == 2);
  CHECK(store.stats().blocks_pinned == 10);
  parent.kill();
  CHECK(::kill(orphan, 0) == 0);
  CHECK(need(store.reap()) == 1);
  CHECK(store.stats().seats_taken == 1);
  CHECK(store.stats().blocks_pinned == 0);
  ::kill(orphan, SIGKILL);
}

TEST_CASE(
    "a process that lost all its descriptors is alive, reads on, and writes into no stranger's "
    "file") {
  const TempDir dir;
  const std::string path = dir / "s";
  Store store = make_store(path);
  std::filesystem::copy_file("/proc/self/exe", dir / "stranger");
  const std::vector<std::byte> before = read_file(dir / "stranger");
  Child child("close_everything", {path, dir / "stranger"});
  CHECK(child.hear() == "io");
  CHECK(need(store.reap()) == 0);
  CHECK(store.stats().seats_taken == 2);
  CHECK((read_file(dir / "stranger") == before));
  child.tell("done");
  CHECK(child.finish() == 0);
  CHECK(get(store, prompt(50, 2)) == 50);
  CHECK(store.stats().blocks_reserved == 0);
}
