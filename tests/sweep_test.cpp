#include "catch.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>

#include "support/stores.hpp"
#include "support/temp_dir.hpp"
#include "support/tracer.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

/// Processes that die, or are stopped for ever, just before and just after every system call of one
/// operation. Whoever comes next must open the store, find what was there and go on working.

namespace {

constexpr std::uint32_t kept_tokens = 100;
const std::uint64_t kept_seed = 1;

/// Arguments: operation, store, seed.
int run_operation(const Arguments& arguments) {
  const std::string& operation = arguments[0];
  const std::string& path = arguments[1];
  const std::uint64_t seed = std::stoul(arguments[2]);
  if (operation == "create" || operation == "open") {
    mark_begin();
    const Result<Store> store =
        Store::open_or_create(path, small_geometry(), small_model(), small_options());
    mark_end();
    return store ? 0 : 1;
  }
  std::optional<Store> store = need(Store::open(path));
  if (operation == "remove") put(*store, prompt(60, seed));
  if (operation == "trim") need(store->evict(0));
  mark_begin();
  if (operation == "put") put(*store, prompt(60, seed));
  if (operation == "grow") put(*store, prompt(2'500, seed));
  if (operation == "evict") need(store->evict(0));
  if (operation == "remove") need(store->remove(std::array{path_of(*store, prompt(60, seed))}));
  if (operation == "trim") need(store->trim(UINT64_MAX));
  if (operation == "close") store.reset();
  mark_end();
  return 0;
}

const RoleName operation_role("operation", &run_operation);

/// Every system call is a place to die at; under AddressSanitizer, where starting a process takes
/// ten times as long, every seventh.
#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t stride = 7;
#else
constexpr std::uint64_t stride = 1;

/// Stepping is slow: a handful of deaths each time, more by ESKER_TEST_KILLS.
std::uint64_t deaths_wanted() {
  const char* wanted = std::getenv("ESKER_TEST_KILLS");
  constexpr std::uint64_t usual = 4;
  return wanted != nullptr ? std::stoul(wanted) / 30 : usual;
}
#endif

/// Begins anew: otherwise what was stored along the way makes every later step longer.
void renew(const std::string& path) {
  fs::remove_all(path);
  Store store = make_store(path);
  put(store, prompt(kept_tokens, kept_seed));
}

/// A new process's view after a death: everything is in order, and it can work.
void check_sound(const std::string& path, std::uint64_t seed, bool keeps) {
  Store store = need(Store::open_or_create(path, small_geometry(), small_model(), small_options()));
  need(store.reap());
  const TokenList kept = prompt(kept_tokens, kept_seed);
  if (keeps) REQUIRE(get(store, kept) == kept_tokens);
  get(store, kept);
  REQUIRE(get(store, prompt(2'500, seed)) <= 2'500);
  put(store, prompt(48, seed + 1'000'000));
  REQUIRE(get(store, prompt(48, seed + 1'000'000)) == 48);
  put(store, kept);
  REQUIRE(get(store, kept) == kept_tokens);
  const Stats stats = store.stats();
  REQUIRE(stats.blocks_reserved == 0);
  REQUIRE(stats.blocks_pinned == 0);
  REQUIRE(stats.seats_taken == 1);
  REQUIRE(adds_up(stats));
  REQUIRE(need(store.verify()).damage.empty());
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    CAPTURE(entry.path().string());
    REQUIRE(entry.path().filename().string().find("tmp") == std::string::npos);
  }
}

}  // namespace

TEST_CASE("a process killed at any system call of an operation costs nobody anything") {
  const std::string operation = GENERATE("put", "grow", "evict", "remove", "trim", "open", "close");
  CAPTURE(operation);
  const TempDir dir;
  const std::string path = dir / "s";
  renew(path);
  const bool keeps = operation != "evict" && operation != "trim";
  for (std::uint64_t stop = 1;; stop += stride) {
    CAPTURE(stop);
    Tracee tracee("operation", {operation, path, std::to_string(100 + stop)});
    if (!tracee.run(stop)) break;
    tracee.kill();
    check_sound(path, 100 + stop, keeps);
    if (stop / stride % 8 == 0) renew(path);
  }
}

// Not under AddressSanitizer: ten times as many instructions, of which most are not Esker's.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("a process killed between any two instructions of an operation costs nobody anything") {
  const std::string operation = GENERATE("put", "evict", "remove", "close");
  CAPTURE(operation);
  const TempDir dir;
  const std::string path = dir / "s";
  renew(path);
  const std::uint64_t all =
      Tracee("operation", {operation, path, "100"}).run_instructions(UINT64_MAX);
  REQUIRE(all > 1'000);
  std::mt19937_64 random(std::random_device{}());
  for (std::uint64_t seed = 200; seed < 200 + deaths_wanted(); ++seed) {
    renew(path);
    const std::uint64_t instruction = random() % all;
    CAPTURE(instruction);
    Tracee tracee("operation", {operation, path, std::to_string(seed)});
    if (tracee.run_instructions(instruction) < instruction) continue;
    tracee.kill();
    check_sound(path, seed, operation != "evict");
  }
}
#endif

TEST_CASE("a process killed at any system call while it rebuilds control costs nobody anything") {
  const TempDir dir;
  const std::string path = dir / "s";
  renew(path);
  for (std::uint64_t stop = 1;; stop += stride) {
    CAPTURE(stop);
    fs::remove(path + "/control");
    Tracee tracee("operation", {"open", path, "0"});
    if (!tracee.run(stop)) break;
    tracee.kill();
    check_sound(path, 100 + stop, true);
    if (stop / stride % 8 == 0) renew(path);
  }
}

TEST_CASE("a process killed at any system call while it creates a store is no obstacle") {
  for (std::uint64_t stop = 1;; stop += stride) {
    CAPTURE(stop);
    const TempDir dir;
    Tracee tracee("operation", {"create", dir / "s", "0"});
    if (!tracee.run(stop)) break;
    tracee.kill();
    check_sound(dir / "s", 100, false);
  }
}

TEST_CASE("a process stopped at any system call of an operation delays no reader and no writer") {
  const std::string operation = GENERATE("put", "grow", "evict", "remove", "trim", "close");
  CAPTURE(operation);
  const TempDir dir;
  const std::string path = dir / "s";
  Store store = make_store(path);
  for (std::uint64_t stop = 1;; stop += stride) {
    CAPTURE(stop);
    put(store, prompt(kept_tokens, kept_seed));
    Tracee tracee("operation", {operation, path, std::to_string(100 + stop)});
    if (!tracee.run(stop)) break;
    get(store, prompt(kept_tokens, kept_seed));
    put(store, prompt(48, 1'000'000 + stop));
    REQUIRE(get(store, prompt(48, 1'000'000 + stop)) == 48);
    need(store.evict(0));
    put(store, prompt(kept_tokens, kept_seed));
    REQUIRE(get(store, prompt(kept_tokens, kept_seed)) == kept_tokens);
    tracee.kill();
    REQUIRE(adds_up(store.stats()));
  }
  need(store.reap());
  CHECK(store.stats().seats_taken == 1);
}

TEST_CASE("a process stopped while it opens a store makes others wait no longer than they said") {
  const bool rebuild = GENERATE(true, false);
  const TempDir dir;
  const std::string path = dir / "s";
  renew(path);
  Options impatient;
  impatient.open_deadline_ms = 30;
  std::uint64_t refused = 0;
  for (std::uint64_t stop = 1;; stop += stride) {
    CAPTURE(stop);
    if (rebuild) fs::remove(path + "/control");
    Tracee tracee("operation", {"open", path, "0"});
    if (!tracee.run(stop)) break;
    {
      const Result<Store> store = Store::open(path, impatient);
      if (store) REQUIRE(get(*store, prompt(kept_tokens, kept_seed)) == kept_tokens);
      if (!store) {
        ++refused;
        REQUIRE(store.error().code == Errc::busy);
      }
    }
    tracee.kill();
    REQUIRE(get(need(Store::open(path)), prompt(kept_tokens, kept_seed)) == kept_tokens);
  }
  CHECK(refused > 0);
}
