#include "catch.hpp"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <optional>

#include "support/process.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// Opens a store, pins prompt 1, reserves room for another and waits. Argument: store.
int hold(const Arguments& arguments) {
  Result<Store> store = Store::open(arguments[0]);
  if (!store) {
    say(std::string(name(store.error().code)) + ": " + store.error().message);
    return 1;
  }
  const Prefix pinned = store->lookup(prompt(160, 1));
  const Result<Reservation> reserved = store->reserve(prompt(100, std::stoul(arguments[1])));
  if (!reserved) return 2;
  say("holding");
  listen();
  return wrong(pinned, store->geometry(), prompt(160, 1)).empty() ? 0 : 3;
}

const RoleName hold_role("hold", &hold);

/// The same inside a new process id namespace, where its own id is 1.
int hold_in_container(const Arguments& arguments) {
  if (::unshare(CLONE_NEWPID) != 0) {
    say("may not");
    return 0;
  }
  const pid_t child = ::fork();
  if (child == 0) ::_exit(hold(arguments));
  int status = 0;
  ::waitpid(child, &status, 0);
  // Not the usual way out: a leak checker would start a process in the namespace, which is dead.
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

const RoleName container_role("hold_in_container", &hold_in_container);

Store make_with_seats(const std::string& path, std::uint32_t seats) {
  Options options = small_options(2 * mib);
  options.seats = seats;
  Store store = make_store(path, small_geometry(), options);
  put(store, prompt(160, 1));
  return store;
}

}  // namespace

TEST_CASE("when every seat is taken by the living, opening is busy and names them") {
  const TempDir dir;
  const std::string path = dir / "s";
  const Store store = make_with_seats(path, 3);
  Child one("hold", {path, "10"});
  Child two("hold", {path, "11"});
  CHECK(one.hear() == "holding");
  CHECK(two.hear() == "holding");
  const Result<Store> refused = Store::open(path);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::busy);
  CHECK_THAT(refused.error().message, contains(std::to_string(one.pid())) &&
                                          contains(std::to_string(two.pid())) && contains("3"));
  bool told = false;
  for (const Event& event : store.events()) told = told || event.kind == EventKind::attach_refused;
  CHECK(told);
}

TEST_CASE("the seats of the dead are free again at once, with all they held") {
  const TempDir dir;
  const std::string path = dir / "s";
  Store store = make_with_seats(path, 3);
  for (int round = 0; round < 10; ++round) {
    Child one("hold", {path, "10"});
    Child two("hold", {path, "11"});
    REQUIRE(one.hear() == "holding");
    REQUIRE(two.hear() == "holding");
    REQUIRE(store.stats().blocks_reserved == 14);
    one.kill();
    two.kill();
    Child three("hold", {path, "12"});
    REQUIRE(three.hear() == "holding");
    three.tell("done");
    REQUIRE(three.finish() == 0);
  }
  need(store.reap());
  CHECK(store.stats().seats_taken == 1);
  CHECK(store.stats().blocks_reserved == 0);
  CHECK(store.stats().blocks_pinned == 0);
  CHECK(store.stats().counters.reaped_seats == 20);
  CHECK(get(store, prompt(160, 1)) == 160);
}

TEST_CASE("closing a handle frees its seat, in any order with its prefixes and reservations") {
  const TempDir dir;
  Store store = make_with_seats(dir / "s", 2);
  for (int round = 0; round < 5; ++round) {
    std::optional<Store> other = need(Store::open(dir / "s"));
    CHECK_FALSE(Store::open(dir / "s").has_value());
    Prefix prefix = other->lookup(prompt(160, 1));
    Reservation reservation = need(other->reserve(prompt(40, 2)));
    other.reset();
    if (round % 2 == 0) prefix = {};
    reservation = {};
    const bool still_held = !prefix.empty();
    CHECK(Store::open(dir / "s").has_value() != still_held);
  }
  CHECK(store.stats().seats_taken == 1);
  CHECK(store.stats().blocks_pinned == 0);
}

TEST_CASE("processes are listed with what they hold, alive or not") {
  const TempDir dir;
  const std::string path = dir / "s";
  Store store = make_with_seats(path, 4);
  Child child("hold", {path, "10"});
  CHECK(child.hear() == "holding");
  const auto found = [&]() -> std::optional<Process> {
    for (const Process& process : store.processes()) {
      if (process.pid == static_cast<std::uint32_t>(child.pid())) return process;
    }
    return std::nullopt;
  };
  const std::optional<Process> alive = found();
  REQUIRE(alive);
  CHECK(alive->alive);
  CHECK(alive->pinned_blocks >= 10);
  CHECK(alive->reserved_blocks == 7);
  CHECK(alive->opened_unix_ns > 0);
  CHECK(store.processes().size() == 2);
  child.stop();
  CHECK(found()->alive);
  ::kill(child.pid(), SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT);
  const std::optional<Process> dead = found();
  CHECK((!dead || !dead->alive));
}

TEST_CASE("a stopped process keeps what it pins, and delays nobody") {
  const TempDir dir;
  const std::string path = dir / "s";
  Store store = make_with_seats(path, 4);
  Child child("hold", {path, "10"});
  CHECK(child.hear() == "holding");
  child.stop();
  for (std::uint64_t seed = 20; seed < 120; ++seed) {
    put(store, prompt(160, seed));
    CHECK(get(store, prompt(160, seed)) == 160);
  }
  CHECK(store.stats().counters.evicted_blocks > 0);
  need(store.evict(0));
  CHECK(need(store.reap()) == 0);
  CHECK(get(need(Store::open(path)), prompt(160, 1)) == 160);
  child.resume();
  child.tell("done");
  CHECK(child.finish() == 0);
}

TEST_CASE("two containers with equal process ids never take each other for dead") {
  const TempDir dir;
  const std::string path = dir / "s";
  Store store = make_with_seats(path, 4);
  Child one("hold_in_container", {path, "10"});
  const std::string word = one.hear();
  if (word == "may not") {
    WARN("left out: no new process id namespace here");
    return;
  }
  CHECK(word == "holding");
  Child two("hold_in_container", {path, "11"});
  CHECK(two.hear() == "holding");
  CHECK(need(store.reap()) == 0);
  CHECK(store.stats().seats_taken == 3);
  for (std::uint64_t seed = 20; seed < 120; ++seed) need(try_put(store, prompt(160, seed)));
  for (Child* child : {&one, &two}) {
    child->tell("done");
    CHECK(child->finish() == 0);
  }
  CHECK(store.stats().seats_taken == 1);
}

TEST_CASE("the number of seats is between 1 and 4,095") {
  const TempDir dir;
  for (const std::uint32_t seats : {0u, 4'096u, UINT32_MAX}) {
    Options options = small_options();
    options.seats = seats;
    const Result<Store> store = Store::create(dir / "s", small_geometry(), small_model(), options);
    REQUIRE_FALSE(store);
    CHECK(store.error().code == Errc::invalid);
    CHECK_THAT(store.error().message, contains("seats") && contains("4095"));
  }
  Options options = small_options();
  options.seats = 1;
  const Store store = make_store(dir / "s", small_geometry(), options);
  CHECK(Store::open(dir / "s").error().code == Errc::busy);
}

TEST_CASE("the tools see a store whose seats are all taken") {
  const TempDir dir;
  const Store store = make_with_seats(dir / "s", 1);
  Options options;
  options.access = Access::inspect;
  const Store inspector = need(Store::open(dir / "s", options));
  CHECK(inspector.processes().size() == 1);
  CHECK(inspector.match(prompt(160, 1)) == 160);
}
