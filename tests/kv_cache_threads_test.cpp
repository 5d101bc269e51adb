#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

constexpr std::uint32_t all_tokens = 400;

/// Writes the rows of all tokens, one by one, with a sync now and then.
std::string write_all(KvCache& cache, const Content& content) {
  const Geometry geometry = small_geometry();
  for (std::uint32_t at = 0; at < all_tokens; ++at) {
    for (std::uint32_t layer = 0; layer < geometry.layers.size(); ++layer) {
      const Result<void> stored =
          cache.store(layer, content.rows(geometry, layer, Plane::key, {at, at + 1}),
                      content.rows(geometry, layer, Plane::value, {at, at + 1}));
      if (!stored) return "store: " + stored.error().message;
    }
    if (const Result<void> done = cache.advance(); !done) return "advance: " + done.error().message;
    if (at % 100 == 99) {
      if (const Result<void> done = cache.sync(); !done) return "sync: " + done.error().message;
    }
  }
  return "";
}

/// Looks at every plane by `keys`, `values` and `read`, as long as rows are added.
std::string read_along(const KvCache& cache, const Content& content,
                       const std::atomic<bool>& given_up) {
  const Geometry geometry = small_geometry();
  std::vector<std::vector<std::byte>> wanted;
  each_plane(geometry, [&](std::uint32_t layer, Plane plane) {
    wanted.push_back(content.rows(geometry, layer, plane, {0, all_tokens}));
  });
  std::uint32_t length = 0;
  std::string problem;
  while (length < all_tokens && problem.empty() && !given_up) {
    const std::uint32_t now = cache.length();
    if (now < length) return "the length fell";
    length = now;
    std::size_t index = 0;
    each_plane(geometry, [&](std::uint32_t layer, Plane plane) {
      const std::vector<std::byte>& right = wanted[index++];
      const std::size_t bytes = std::size_t{length} * geometry.row_bytes(layer, plane);
      if (bytes == 0) return;
      const auto rows = plane == Plane::key ? cache.keys(layer) : cache.values(layer);
      if (rows.size() < bytes || std::memcmp(rows.data(), right.data(), bytes) != 0) {
        problem = "rows in place";
      }
      std::vector<std::byte> copy(bytes);
      if (!cache.read(layer, plane, {0, length}, copy)) problem = "read failed";
      if (std::memcmp(copy.data(), right.data(), bytes) != 0) problem = "rows copied";
    });
  }
  return problem;
}

void check_readers_beside_writer(KvCache& cache) {
  const TokenList tokens = prompt(all_tokens, 1);
  const Content content{Tokens(tokens)};
  std::array<std::string, 4> problems;
  std::vector<std::thread> threads;
  std::atomic<bool> given_up = false;
  threads.emplace_back([&] {
    problems[0] = write_all(cache, content);
    given_up = !problems[0].empty();
  });
  for (std::size_t i = 1; i < problems.size(); ++i) {
    threads.emplace_back([&, i] { problems[i] = read_along(cache, content, given_up); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) CHECK(problem == "");
  CHECK(cache.length() == all_tokens);
}

}  // namespace

TEST_CASE("threads read a cache in private memory while its writer adds rows", "[cache]") {
  KvCache cache = need(KvCache::in_memory(small_geometry(), all_tokens));
  check_readers_beside_writer(cache);
}

TEST_CASE("threads read a cache file by its writer's own handle while rows are added", "[cache]") {
  const TempDir dir;
  KvCache cache = need(KvCache::create(dir / "cache", small_geometry(), all_tokens));
  check_readers_beside_writer(cache);
}

TEST_CASE("threads with read handles of their own follow a writer in the same process", "[cache]") {
  const TempDir dir;
  const TokenList tokens = prompt(all_tokens, 1);
  const Content content{Tokens(tokens)};
  KvCache cache = need(KvCache::create(dir / "cache", small_geometry(), all_tokens));
  CacheFileOptions reading;
  reading.access = CacheAccess::read;
  std::array<std::string, 3> problems;
  std::atomic<bool> given_up = false;
  std::vector<std::thread> threads;
  for (std::string& problem : problems) {
    threads.emplace_back([&] {
      const Result<KvCache> mine = KvCache::open(dir / "cache", reading);
      problem = mine ? read_along(*mine, content, given_up) : mine.error().message;
    });
  }
  const std::string problem_of_writer = write_all(cache, content);
  given_up = !problem_of_writer.empty();
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) CHECK(problem == "");
  CHECK(problem_of_writer == "");
}
