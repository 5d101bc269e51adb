#include "catch.hpp"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>
#include <memory>
#include <optional>

#include "support/allocations.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"
#include "support/tracer.hpp"

using namespace esker;
using namespace esker::test;

namespace {

constexpr std::uint32_t long_prompt = 4'096;

Options cost_options() {
  Options options;
  options.keep_free_bytes = 0;
  options.capacity_bytes = 256 * mib;
  options.segment_bytes = 64 * mib;
  return options;
}

/// Looks up 100 times where the kernel kills whoever makes another system call than read, write or
/// exit. Arguments: store, "lookup" or "match".
int look_up_confined(const Arguments& arguments) {
  const Store store = need(Store::open(arguments[0]));
  const TokenList tokens = prompt(long_prompt, 1);
  if (store.lookup(tokens).tokens() != long_prompt) return 2;
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) return 3;
  std::uint32_t sum = 0;
  for (int i = 0; i < 100; ++i) {
    sum += arguments[1] == "match" ? store.match(tokens) : store.lookup(tokens).tokens();
  }
  ::syscall(SYS_exit, sum == 100 * long_prompt ? 0 : 4);
  return 5;
}

const RoleName confined_role("look_up_confined", &look_up_confined);

/// Makes a system call where none is allowed: proves that the cage of the role above is closed.
int call_confined(const Arguments&) {
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) return 3;
  ::syscall(SYS_getppid);
  ::syscall(SYS_exit, 0);
  return 5;
}

const RoleName call_role("call_confined", &call_confined);

int open_traced(const Arguments& arguments) {
  mark_begin();
  const Result<Store> store = Store::open(arguments[0]);
  mark_end();
  return store ? 0 : 1;
}

const RoleName open_role("open_traced", &open_traced);

int look_up_traced(const Arguments& arguments) {
  const Store store = need(Store::open(arguments[0]));
  const TokenList tokens = prompt(long_prompt, 1);
  if (arguments[1] == "warm") (void)store.lookup(tokens);
  mark_begin();
  const std::uint32_t found = store.lookup(tokens).tokens();
  mark_end();
  return found == long_prompt ? 0 : 1;
}

const RoleName look_up_role("look_up_traced", &look_up_traced);

}  // namespace

TEST_CASE("a lookup of 4,096 tokens makes no system call, and neither does a match") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(32), cost_options());
  put(store, prompt(long_prompt, 1));
  REQUIRE(run_child("call_confined", {}) == 128 + SIGKILL);
  CHECK(run_child("look_up_confined", {dir / "s", "lookup"}) == 0);
  CHECK(run_child("look_up_confined", {dir / "s", "match"}) == 0);
}

TEST_CASE(
    "even the first lookup of a handle makes no more system calls than a few for its memory") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(32), cost_options());
  put(store, prompt(long_prompt, 1));
  CHECK(count_system_calls("look_up_traced", {dir / "s", "warm"}) == 0);
  CHECK(count_system_calls("look_up_traced", {dir / "s", "cold"}) <= 4);
}

TEST_CASE("a warm lookup of 4,096 tokens allocates nothing, and neither do match, view and copy") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(32), cost_options());
  const TokenList tokens = prompt(long_prompt, 1);
  put(store, tokens);
  std::vector<std::byte> out(std::size_t{long_prompt} * 34);
  const auto use = [&] {
    const Prefix prefix = store.lookup(tokens);
    const std::uint32_t matched = store.match(tokens);
    std::size_t bytes = 0;
    if (const Result<Runs> runs = prefix.view(0, Plane::key)) {
      for (const Run& run : *runs) bytes += run.bytes.size();
    }
    const bool copied = prefix.copy(0, Plane::key, {}, std::span(out)).has_value();
    return prefix.tokens() == long_prompt && matched == long_prompt && copied &&
           bytes == out.size();
  };
  REQUIRE(use());
  const std::uint64_t before = allocations();
  bool right = true;
  for (int i = 0; i < 10; ++i) right = use() && right;
  const std::uint64_t after = allocations();  // the assertion itself allocates
  CHECK(after == before);
  CHECK(right);
}

TEST_CASE("the counter of allocations counts") {
  const std::uint64_t before = allocations();
  const auto text = std::make_unique<std::string>(100, 'x');
  const std::uint64_t after = allocations();
  CHECK(after >= before + 2);
}

TEST_CASE("opening a live store makes as many system calls with 100,000 blocks as with 1,000") {
  const TempDir dir;
  std::optional<std::uint64_t> first_count;
  for (const std::uint32_t blocks : {1'000u, 100'000u}) {
    const std::string path = dir / std::to_string(blocks);
    Store store = make_store(path, tiny_geometry(), cost_options());
    for (std::uint32_t stored = 0; stored < blocks; stored += 1'000) {
      put(store, prompt(1'000, stored));
    }
    REQUIRE(store.stats().blocks_ready >= blocks * 99 / 100);
    const std::uint64_t calls = count_system_calls("open_traced", {path});
    CAPTURE(blocks, calls);
    if (first_count) CHECK(calls == *first_count);
    first_count = calls;
    CHECK(calls < 200);
  }
}
