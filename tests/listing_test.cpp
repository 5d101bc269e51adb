#include "catch.hpp"

#include <unistd.h>
#include <algorithm>
#include <chrono>

#include "support/process.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

std::uint64_t unix_now_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

const PathInfo& path_of(const std::vector<PathInfo>& paths, const Store& store,
                        const TokenList& tokens) {
  const std::uint64_t path = store.lookup(tokens).path();
  const auto found = std::find_if(paths.begin(), paths.end(),
                                  [&](const PathInfo& info) { return info.path == path; });
  if (found == paths.end()) throw std::runtime_error("a stored path is not listed");
  return *found;
}

}  // namespace

TEST_CASE("blocks lists the trie itself, parents before children, with forks and roots") {
  const TempDir dir;
  const TokenList one = prompt(100, 1);
  const TokenList two = fork_at(one, 64, prompt(16, 2));
  Store store = make_store(dir / "s");
  CHECK(need(store.blocks()).empty());
  put(store, one);
  put(store, two);
  put(store, prompt(20, 3), "tenant");
  const Prefix pinned = store.lookup(one);
  const std::vector<BlockInfo> blocks = need(store.blocks());
  REQUIRE(blocks.size() == store.stats().blocks_ready);
  std::vector<std::uint32_t> children(blocks.size());
  std::uint64_t tokens = 0;
  std::uint32_t pins = 0;
  std::vector<std::string> roots;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const BlockInfo& block = blocks[i];
    tokens += block.tokens;
    pins += block.pins;
    CHECK_FALSE(block.orphan);
    CHECK(block.published_unix_ns <= unix_now_ns());
    if (block.parent == BlockInfo::none) {
      CHECK(block.first_token == 0);
      roots.push_back(block.name_space);
      continue;
    }
    REQUIRE(block.parent < i);
    const BlockInfo& parent = blocks[block.parent];
    ++children[block.parent];
    CHECK(block.first_token == parent.first_token + parent.tokens);
    CHECK(block.name_space.empty());
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) CHECK(blocks[i].children == children[i]);
  std::sort(roots.begin(), roots.end());
  CHECK(roots == std::vector<std::string>{"", "tenant"});
  CHECK(tokens == 100 + 16 + 20);
  CHECK(pins == 7);
  CHECK(std::count(children.begin(), children.end(), 2U) == 1);
  const auto leaf = std::find_if(blocks.begin(), blocks.end(), [&](const BlockInfo& block) {
    return block.path == pinned.path() && block.children == 0;
  });
  REQUIRE(leaf != blocks.end());
  CHECK(leaf->first_token + leaf->tokens == 100);
}

TEST_CASE("paths lists every leaf with its tokens and bytes, shared or its own") {
  const TempDir dir;
  const TokenList one = prompt(100, 1);
  const TokenList two = fork_at(one, 64, prompt(16, 2));
  Store store = make_store(dir / "s");
  const std::uint64_t before = unix_now_ns();
  put(store, one);
  put(store, two);
  put(store, prompt(20, 3), "tenant");
  const Prefix pinned = store.lookup(one);
  const std::vector<PathInfo> paths = need(store.paths());
  REQUIRE(paths.size() == 3);
  const std::uint64_t block = store.stats().block_bytes;
  const PathInfo& first_path = path_of(paths, store, one);
  CHECK(first_path.tokens == 100);
  CHECK(first_path.blocks == 7);
  CHECK(first_path.bytes == 7 * block);
  CHECK(first_path.own_bytes == 3 * block);
  CHECK(first_path.pins == 1);
  CHECK(first_path.published_unix_ns >= before);
  CHECK(first_path.published_unix_ns <= unix_now_ns());
  CHECK(first_path.name_space.empty());
  CHECK_FALSE(first_path.key);
  const PathInfo& second_path = path_of(paths, store, two);
  CHECK(second_path.tokens == 80);
  CHECK(second_path.own_bytes == block);
  CHECK(second_path.pins == 0);
}

TEST_CASE("the sums of a store count blocks of every state") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(100, 1));
  const Prefix pinned = store.lookup(prompt(40, 1));
  const Reservation reserved = need(store.reserve(prompt(50, 2)));
  const Stats stats = store.stats();
  CHECK(stats.blocks_ready == 7);
  CHECK(stats.blocks_reserved == 4);
  CHECK(stats.blocks_pinned >= 3);
  CHECK(stats.block_bytes == small_geometry().block_bytes());
  CHECK(stats.store_bytes == 7 * stats.block_bytes);
  CHECK(stats.segments == 1);
  CHECK(stats.segments_unusable == 0);
  CHECK(stats.blocks_total == need(store.info()).segment_blocks);
  CHECK(adds_up(stats));
  CHECK(stats.since_unix_ns > 0);
  CHECK(stats.counters.published_blocks == 7);
  CHECK(stats.counters.published_tokens == 100);
  CHECK(stats.counters.written_bytes >= 100 * small_geometry().token_bytes());
}

TEST_CASE("counters survive the handle and the process that counted") {
  const TempDir dir;
  const Store watcher = make_store(dir / "s");
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Store store = need(Store::open(dir / "s"));
    put(store, prompt(32, seed));
    CHECK(get(store, prompt(32, seed)) == 32);
  }
  const Counters counters = watcher.stats().counters;
  CHECK(counters.published_blocks == 10);
  CHECK(counters.hit_tokens == 5 * 32);
}

TEST_CASE("copied and verified bytes are counted") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(160, 1));
  const Store reader = need(Store::open(dir / "s"));
  const Prefix prefix = reader.lookup(prompt(160, 1));
  std::vector<std::byte> out(160 * 34);
  need(prefix.copy(0, Plane::key, {}, std::span(out)));
  CHECK(reader.stats().counters.copied_bytes >= out.size());
  CHECK(reader.stats().counters.verified_bytes >= out.size());
}

TEST_CASE("events come in order, and only those after a given one") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(4'000, 1));
  const std::vector<Event> all = store.events();
  REQUIRE_FALSE(all.empty());
  CHECK(std::is_sorted(all.begin(), all.end(),
                       [](const Event& a, const Event& b) { return a.sequence < b.sequence; }));
  CHECK(std::any_of(all.begin(), all.end(),
                    [](const Event& event) { return event.kind == EventKind::segment_added; }));
  CHECK(store.events(all.back().sequence).empty());
  CHECK(store.events(all.front().sequence).size() == all.size() - 1);
  for (const Event& event : all) CHECK(event.pid == static_cast<std::uint32_t>(::getpid()));
}

TEST_CASE("the event ring keeps the last 1,024") {
  const TempDir dir;
  Options options = small_options();
  options.seats = 1;
  const Store store = make_store(dir / "s", small_geometry(), options);
  for (int i = 0; i < 1'500; ++i) (void)Store::open(dir / "s");
  const std::vector<Event> events = store.events();
  CHECK(events.size() <= 1'024);
  CHECK(events.size() >= 1'000);
  CHECK(events.back().sequence >= 1'500);
}

TEST_CASE("a path that was used is younger than one that was not") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(32, 1));
  put(store, prompt(32, 2));
  sleep_ms(200);
  CHECK(get(store, prompt(32, 1)) == 32);
  const std::vector<PathInfo> paths = need(store.paths());
  REQUIRE(paths.size() == 2);
  const auto of = [&](std::uint64_t seed) {
    const TokenList tokens = prompt(32, seed);
    const std::uint64_t name = store.lookup(tokens).path();
    return paths[0].path == name ? paths[0] : paths[1];
  };
  CHECK(of(1).last_used_unix_ns > of(2).last_used_unix_ns);
}

TEST_CASE("sync waits for the disk and says so") {
  const TempDir dir(Place::disk);
  Store store = make_store(dir / "s");
  put(store, prompt(100, 1));
  need(store.sync());
}
