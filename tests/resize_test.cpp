#include "catch.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "support/disk.hpp"
#include "support/homes.hpp"
#include "support/sessions.hpp"
#include "support/temp_dir.hpp"
#include "support/tracer.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t segment = 256 * kib;
constexpr std::uint32_t chat_tokens = 300;

ResizeOptions to(std::uint64_t capacity, bool dry_run = false) {
  ResizeOptions options;
  options.capacity_bytes = capacity;
  options.dry_run = dry_run;
  return options;
}

std::uint64_t capacity_of(const std::string& path) { return need(inspect(path)).capacity_bytes; }

/// Prompts of 400 tokens each, the first the oldest, and between them a kept chat.
void fill(const std::string& path, std::uint64_t capacity, std::uint64_t prompts) {
  Store store = make_store(path, small_geometry(), small_options(capacity));
  for (std::uint64_t seed = 0; seed < prompts; ++seed) {
    put(store, prompt(400, seed));
    if (seed != prompts / 2) continue;
    need(saved_session(store, "chat", prompt(chat_tokens, 1'000)).keep());
  }
}

/// Checks every byte that is found, and returns how many prompts are whole.
std::uint64_t check_all(const std::string& path, std::uint64_t prompts) {
  Store store = need(Store::open(path, small_options()));
  std::uint64_t whole = 0;
  for (std::uint64_t seed = 0; seed < prompts; ++seed) {
    whole += get(store, prompt(400, seed)) == 400 ? 1 : 0;
  }
  const Session chat = need(Session::resume(store, "chat"));
  CHECK(chat.reusable() == chat_tokens);
  CHECK(wrong_session(chat).empty());
  CHECK(need(store.verify()).damage.empty());
  CHECK(adds_up(store.stats()));
  return whole;
}

/// Arguments: store, capacity.
int run_resize(const Arguments& arguments) {
  mark_begin();
  const Result<Resized> done = Store::resize(arguments[0], to(std::stoul(arguments[1])));
  mark_end();
  return done ? 0 : 1;
}

const RoleName resize_role("resize", &run_resize);

#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t stride = 71;
#else
constexpr std::uint64_t stride = 7;
#endif

}  // namespace

TEST_CASE("a store that was made larger keeps all it held and takes more", "[store]") {
  const TempDir dir;
  const std::string path = dir / "s";
  fill(path, 2 * mib, 4);
  const Resized done = need(Store::resize(path, to(8 * mib)));
  CHECK(done.old_capacity_bytes == 2 * mib);
  CHECK(done.capacity_bytes == 8 * mib);
  CHECK(done.dropped_blocks == 0);
  CHECK(capacity_of(path) == 8 * mib);
  CHECK(check_all(path, 4) == 4);
  Store store = need(Store::open(path, small_options()));
  for (std::uint64_t seed = 100; seed < 130; ++seed) put(store, prompt(400, seed));
  for (std::uint64_t seed = 100; seed < 130; ++seed) CHECK(get(store, prompt(400, seed)) == 400);
  CHECK(store.stats().segments > 8);  // more than there was room for before
  CHECK(allocated_bytes(path) <= 8 * mib);
}

TEST_CASE("a store that was made smaller keeps what was used last, and all that is kept",
          "[store]") {
  const TempDir dir;
  const std::string path = dir / "s";
  const std::uint64_t prompts = 60;
  fill(path, 8 * mib, prompts);
  {
    // The very first prompt lies in the first segment, and is the oldest no more.
    sleep_ms(200);
    const Store store = need(Store::open(path, small_options()));
    REQUIRE(get(store, prompt(400, 0)) == 400);
    sleep_ms(200);
    REQUIRE(get(store, prompt(400, prompts - 1)) == 400);
  }
  const std::uint64_t before = allocated_bytes(path);
  const Resized dry = need(Store::resize(path, to(3 * mib, true)));
  CHECK(capacity_of(path) == 8 * mib);
  CHECK(allocated_bytes(path) == before);
  const Resized done = need(Store::resize(path, to(3 * mib)));
  CHECK(done.removed_segments > 0);
  CHECK(done.moved_blocks > 0);
  CHECK(done.dropped_blocks > 0);
  CHECK(done.disk_bytes >= done.removed_segments * segment / 2);
  CHECK(dry.removed_segments == done.removed_segments);
  CHECK(dry.moved_blocks == done.moved_blocks);
  CHECK(dry.dropped_blocks == done.dropped_blocks);
  CHECK(allocated_bytes(path) <= 3 * mib);
  CHECK(need(inspect(path)).segments == need(inspect(path)).max_segments);
  CHECK(check_all(path, prompts) >= 2);
  Store store = need(Store::open(path, small_options()));
  CHECK(get(store, prompt(400, 0)) == 400);
  CHECK(get(store, prompt(400, prompts - 1)) == 400);
  put(store, prompt(400, 500));
  CHECK(get(store, prompt(400, 500)) == 400);
  CHECK(allocated_bytes(path) <= 3 * mib);
}

TEST_CASE("a store can be made smaller and larger again and again", "[store]") {
  const TempDir dir;
  const std::string path = dir / "s";
  fill(path, 4 * mib, 8);
  for (const std::uint64_t capacity : {3 * mib, 6 * mib, 2 * mib, 3 * mib / 2, 5 * mib, 5 * mib}) {
    CAPTURE(capacity);
    need(Store::resize(path, to(capacity)));
    CHECK(capacity_of(path) == capacity);
    check_all(path, 8);
    Store store = need(Store::open(path, small_options()));
    for (std::uint64_t seed = 0; seed < 8; ++seed) put(store, prompt(400, seed));
    CHECK(allocated_bytes(path) <= capacity);
  }
}

TEST_CASE("a capacity that kept sessions do not fit into is refused, and the named one works",
          "[store]") {
  const TempDir dir;
  const std::string path = dir / "s";
  {
    // Wide rows, so that the files of sessions are small beside their blocks.
    const Geometry wide = need(Geometry::uniform(2, 2, 64, "f16", 16));
    Store store = make_store(path, wide, small_options(8 * mib));
    for (std::uint64_t seed = 0; seed < 2; ++seed) {
      need(saved_session(store, "chat " + std::to_string(seed), prompt(1'000, seed)).keep());
    }
  }
  const std::uint64_t before = allocated_bytes(path);
  const Result<Resized> refused = Store::resize(path, to(3 * mib / 2));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::full);
  CHECK_THAT(refused.error().message, contains("kept sessions"));
  CHECK(capacity_of(path) == 8 * mib);
  CHECK(allocated_bytes(path) == before);
  const std::string& words = refused.error().message;
  const std::uint64_t least = std::stoul(words.substr(words.rfind('(') + 1));
  CHECK_FALSE(Store::resize(path, to(least - 1)));
  need(Store::resize(path, to(least)));
  Store store = need(Store::open(path));
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const Session chat = need(Session::resume(store, "chat " + std::to_string(seed)));
    CHECK(chat.reusable() == 1'000);
    CHECK(wrong_session(chat).empty());
  }
}

TEST_CASE("a capacity without room for one segment is refused, and the named one works",
          "[store]") {
  const TempDir dir;
  const std::string path = dir / "s";
  static_cast<void>(make_store(path));
  for (const std::uint64_t capacity : {std::uint64_t{0}, std::uint64_t{1}, segment}) {
    const Result<Resized> refused = Store::resize(path, to(capacity));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::full);
    const std::string& words = refused.error().message;
    const std::uint64_t least = std::stoul(words.substr(words.rfind('(') + 1));
    CHECK_FALSE(Store::resize(path, to(least - 1, true)));
    CHECK(Store::resize(path, to(least, true)));
  }
  ResizeOptions cold;
  cold.cold_bytes = UINT64_MAX;
  CHECK_FALSE(Store::resize(path, cold));
  // No file system is as large as that.
  const Result<Resized> vast = Store::resize(path, to(UINT64_MAX / 2));
  REQUIRE_FALSE(vast);
  CHECK_THAT(vast.error().message, contains("the size of its file system"));
  CHECK(capacity_of(path) == 8 * mib);
}

TEST_CASE("a share for cold blocks is taken from the segments", "[store]") {
  const TempDir dir;
  const std::string path = dir / "s";
  static_cast<void>(make_store(path));
  const std::uint32_t before = need(inspect(path)).max_segments;
  ResizeOptions options;
  options.cold_bytes = 4 * mib;
  const Resized done = need(Store::resize(path, options));
  CHECK(done.cold_bytes == 4 * mib);
  CHECK(done.capacity_bytes == 8 * mib);
  CHECK(done.max_segments < before);
  CHECK(need(Store::resize(path, {})).old_cold_bytes == 4 * mib);
}

TEST_CASE("a capacity beyond the file system is refused, and the store opens as before",
          "[store]") {
  const TempDir dir;
  const std::string path = dir / "s";
  fill(path, 2 * mib, 4);
  const Result<Resized> refused = Store::resize(path, to(std::uint64_t{1} << 56));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::invalid);
  CHECK_THAT(refused.error().message, contains("the size of its file system"));
  CHECK(capacity_of(path) == 2 * mib);
  check_all(path, 4);
}

TEST_CASE("a store that is open is not resized, and the answer names who has it", "[store]") {
  const TempDir dir;
  const std::string path = dir / "s";
  const Store store = make_store(path);
  const Result<Resized> refused = Store::resize(path, to(4 * mib));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::busy);
  CHECK_THAT(refused.error().message, contains("pid " + std::to_string(::getpid())));
  CHECK(capacity_of(path) == 8 * mib);
  CHECK(Store::resize(dir / "none", to(4 * mib)).error().code == Errc::missing);
}

TEST_CASE("a process killed at any system call of a resize leaves a store of either size",
          "[store]") {
  const std::uint64_t capacity = GENERATE(1U, 3U) * mib;
  CAPTURE(capacity);
  const TempDir dir;
  const std::string master = dir / "master";
  const std::string path = dir / "s";
  const std::uint64_t prompts = 16;
  fill(master, 2 * mib, prompts);
  std::map<std::uint64_t, int> seen;
  // Growing takes few system calls, so each of a few is tried.
  const std::uint64_t step = capacity > 2 * mib ? 3 : stride;
  const auto killed_at = [&](std::uint64_t stop) {
    CAPTURE(stop);
    fs::remove_all(path);
    copy_tree(master, path);
    Tracee tracee("resize", {path, std::to_string(capacity)});
    if (!tracee.run(stop)) return false;
    tracee.kill();
    const std::uint64_t now = capacity_of(path);
    REQUIRE((now == 2 * mib || now == capacity));
    ++seen[now];
    check_all(path, prompts);
    {
      Store store = need(Store::open(path, small_options()));
      put(store, prompt(400, 77));
      REQUIRE(get(store, prompt(400, 77)) == 400);
    }
    need(Store::resize(path, to(capacity)));
    REQUIRE(capacity_of(path) == capacity);
    REQUIRE(allocated_bytes(path) <= capacity);
    check_all(path, prompts);
    return true;
  };
  std::uint64_t stop = 1;
  while (killed_at(stop)) stop += step;
  // The last calls, behind the commit, are always among them.
  for (stop -= std::min(stop - 1, step - 1); killed_at(stop);) ++stop;
  CHECK(seen[2 * mib] > 0);
  CHECK(seen[capacity] > 0);
}
