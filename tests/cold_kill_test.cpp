#include "catch.hpp"

#include "cold_support.hpp"
#include "support/tracer.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

/// Processes that die, or are stopped for ever, at every system call of freezing and thawing.

namespace {

/// Arguments: operation, store.
int run_operation(const Arguments& arguments) {
  const std::string& operation = arguments[0];
  Store store = need(Store::open(arguments[1]));
  mark_begin();
  if (operation == "freeze") need(store.freeze(UINT64_MAX));
  if (operation == "thaw") need(store.thaw(prompt(100, 1)));
  if (operation == "remove")
    need(store.remove(std::array<std::uint64_t, 1>{std::stoull(arguments[2])}));
  mark_end();
  return 0;
}

const RoleName operation_role("cold operation", &run_operation);

#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t stride = 7;
#else
constexpr std::uint64_t stride = 1;
#endif

/// Prompts 1 and 2 are hot, or cold for `thaw`; a cold file of prompt 3 is there before.
void renew(const std::string& path, bool cold) {
  fs::remove_all(path);
  Store store = make_cold_store(path, cold_options(2 * mib));
  put(store, prompt(100, 3));
  freeze_all(store);
  put(store, prompt(100, 1));
  put(store, fork_at(prompt(100, 1), 48, prompt(50, 2)));
  if (cold) freeze_all(store);
}

void check_sound(const std::string& path) {
  Store store = need(Store::open(path));
  need(store.reap());
  const Stats stats = store.stats();
  REQUIRE(stats.blocks_reserved == 0);
  REQUIRE(stats.blocks_pinned == 0);
  REQUIRE(adds_up(stats));
  REQUIRE(stats.cold_file_bytes <= 2 * mib);
  REQUIRE(need(store.verify()).damage.empty());
  REQUIRE(thaw_and_get(store, prompt(100, 3)) == 100);
  freeze_all(store);
  for (const auto& entry : fs::directory_iterator(path + "/cold")) {
    CAPTURE(entry.path().string());
    REQUIRE(entry.path().extension() == ".esnap");
  }
  REQUIRE(thaw_and_get(store, prompt(100, 3)) == 100);
}

void check_found(const std::string& path) {
  Store store = need(Store::open(path));
  REQUIRE(thaw_and_get(store, prompt(100, 1)) == 100);
  REQUIRE(thaw_and_get(store, fork_at(prompt(100, 1), 48, prompt(50, 2))) == 98);
}

}  // namespace

TEST_CASE("killed at any system call of freeze or thaw, a block is in one place or in both") {
  const std::string operation = GENERATE("freeze", "thaw");
  CAPTURE(operation);
  const TempDir dir;
  const std::string path = dir / "s";
  for (std::uint64_t stop = 1;; stop += stride) {
    CAPTURE(stop);
    renew(path, operation == "thaw");
    Tracee tracee("cold operation", {operation, path});
    if (!tracee.run(stop)) break;
    tracee.kill();
    check_found(path);
    check_sound(path);
    check_found(path);
  }
}

TEST_CASE(
    "killed at any system call of a removal, what stays is found, and removing again ends it") {
  const TempDir dir;
  const std::string path = dir / "s";
  for (std::uint64_t stop = 1;; stop += stride) {
    CAPTURE(stop);
    renew(path, false);
    std::string name;
    {
      Store store = need(Store::open(path));
      name = std::to_string(path_of(store, prompt(100, 1)));
      freeze_all(store);
    }
    Tracee tracee("cold operation", {"remove", path, name});
    if (!tracee.run(stop)) break;
    tracee.kill();
    Store store = need(Store::open(path));
    (void)store.remove(std::array<std::uint64_t, 1>{std::stoull(name)});
    REQUIRE(thaw_and_get(store, prompt(100, 1)) == 48);
    REQUIRE(thaw_and_get(store, fork_at(prompt(100, 1), 48, prompt(50, 2))) == 98);
    check_sound(path);
  }
}

TEST_CASE("a process stopped while it freezes delays no reader and no writer, and no thaw") {
  const TempDir dir;
  const std::string path = dir / "s";
  renew(path, false);
  Options options;
  options.freeze_evicted = true;
  options.keep_free_bytes = 0;
  for (std::uint64_t stop = 1;; stop += 3 * stride) {
    CAPTURE(stop);
    renew(path, false);
    Store store = need(Store::open(path, options));
    Tracee tracee("cold operation", {"freeze", path});
    if (!tracee.run(stop)) break;
    REQUIRE(thaw_and_get(store, prompt(100, 3)) == 100);
    REQUIRE(thaw_and_get(store, prompt(100, 1)) == 100);
    put(store, prompt(48, 1'000 + stop));
    REQUIRE(get(store, prompt(48, 1'000 + stop)) == 48);
    tracee.kill();
  }
}
