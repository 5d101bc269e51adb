#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "layer_cache_support.hpp"
#include "support/process.hpp"
#include "support/stores.hpp"

using namespace esker;
using namespace esker::test;

namespace {

constexpr std::uint32_t tokens = 64;

LayerCache make_layer(std::uint32_t open = tokens) {
  LayerCache cache = need(LayerCache::make(small_layer()));
  need(cache.initialize(open));
  return cache;
}

/// All of [0, tokens) in one batch.
LayerBatch whole_batch(std::size_t row_bytes, std::uint64_t version) {
  LayerBatch batch(row_bytes);
  for (std::uint32_t token = 0; token < tokens; ++token) batch.add(token, version);
  return batch;
}

/// The versions in a range, lowest and highest; a row that is not whole counts as both.
struct Versions {
  std::uint64_t lowest = UINT64_MAX;
  std::uint64_t highest = 0;
  bool torn = false;
};

Versions versions_in(const LayerRange& range, std::size_t row_bytes) {
  Versions found;
  for (std::uint32_t token = range.begin(); token < range.end(); ++token) {
    const std::size_t at = (token - range.begin()) * row_bytes;
    const auto key = version_of(token, Plane::key, range.keys().subspan(at, row_bytes));
    const auto value = version_of(token, Plane::value, range.values().subspan(at, row_bytes));
    found.torn = found.torn || key == UINT64_MAX || key != value;
    found.lowest = std::min(found.lowest, key);
    found.highest = std::max(found.highest, key);
  }
  return found;
}

/// Runs `body(i)` in so many threads and waits for all of them.
template <class Body>
void in_threads(std::size_t count, Body&& body) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("many threads read and write a layer and every row is of one version", "[cache]") {
  LayerCache cache = make_layer();
  need(cache.write_batch(whole_batch(cache.row_bytes(), 1).entries()));
  std::atomic<int> torn = 0;
  std::atomic<int> refused = 0;
  std::atomic<std::uint64_t> next_version = 2;
  std::atomic<std::uint64_t> highest = 0;
  std::atomic<int> writers_left = 2;
  in_threads(6, [&](std::size_t thread) {
    std::mt19937_64 random(thread);
    if (thread < 2) {
      for (int round = 0; round < 1500; ++round) {
        const auto token = static_cast<std::uint32_t>(random() % tokens);
        const std::uint64_t version = next_version++;
        refused += !cache.write(token, layer_row(token, Plane::key, version, cache.row_bytes()),
                                layer_row(token, Plane::value, version, cache.row_bytes()));
      }
      --writers_left;
      return;
    }
    bool last = false;
    for (int round = 0; !last; ++round) {
      last = writers_left == 0;  // one look at everything after the last write
      const auto token = static_cast<std::uint32_t>(random() % tokens);
      const Result<LayerRange> range = last             ? cache.read_range(0, tokens)
                                       : round % 2 == 0 ? cache.read(token)
                                                        : cache.read_range(token / 2, token);
      refused += !range;
      if (!range) continue;
      const Versions found = versions_in(*range, cache.row_bytes());
      torn += found.torn;
      if (found.highest > highest) highest = found.highest;
    }
  });
  CHECK(torn == 0);
  CHECK(refused == 0);
  CHECK(highest > 1);  // the readers did see writes
}

TEST_CASE("readers see a batch whole or not at all", "[cache]") {
  LayerCache cache = make_layer();
  need(cache.write_batch(whole_batch(cache.row_bytes(), 1).entries()));
  std::atomic<int> mixed = 0;
  std::atomic<int> refused = 0;
  std::atomic<bool> written = false;
  std::atomic<std::uint64_t> seen = 0;
  in_threads(5, [&](std::size_t thread) {
    if (thread == 0) {
      for (std::uint64_t version = 2; version < 400; ++version) {
        refused += !cache.write_batch(whole_batch(cache.row_bytes(), version).entries());
      }
      written = true;
      return;
    }
    bool last = false;
    while (!last) {
      last = written;  // one look after the last write
      const Result<LayerRange> range = cache.read_range(0, tokens);
      refused += !range;
      if (!range) return;
      const Versions found = versions_in(*range, cache.row_bytes());
      mixed += found.torn || found.lowest != found.highest;
      seen = std::max<std::uint64_t>(seen, found.highest);
    }
  });
  CHECK(mixed == 0);
  CHECK(refused == 0);
  CHECK(seen == 399);
}

TEST_CASE("every length that a thread is told can be read, while the layer grows", "[cache]") {
  LayerCache cache = make_layer(1);
  constexpr std::uint32_t all = 300;
  std::atomic<int> wrong = 0;
  in_threads(4, [&](std::size_t thread) {
    LayerCache mine = cache;
    if (thread == 0) {
      for (std::uint32_t token = 0; token < all; ++token) {
        // Backwards in groups of three, so that the length jumps over what lay ready.
        const std::uint32_t at = token / 3 * 3 + 2 - token % 3;
        if (mine.capacity() <= at) need(mine.initialize(at + 20));
        LayerBatch batch(mine.row_bytes());
        batch.add(at, 1);
        wrong += !mine.write_batch(batch.entries());
      }
      return;
    }
    std::uint32_t before = 0;
    while (before < all && wrong == 0) {
      const std::uint32_t length = mine.length();
      wrong += length < before;
      before = length;
      const Result<LayerRange> range = mine.read_range(0, length);
      if (!range || versions_in(*range, mine.row_bytes()).torn) {
        ++wrong;
        return;
      }
    }
  });
  CHECK(wrong == 0);
  CHECK(cache.length() == all);
}

TEST_CASE("readers are inside at the same time", "[cache]") {
  LayerCache cache = make_layer();
  need(cache.write_batch(whole_batch(cache.row_bytes(), 1).entries()));
  std::atomic<int> inside = 0;
  in_threads(4, [&](std::size_t) {
    const LayerRange range = need(cache.read_range(0, tokens));
    ++inside;
    while (inside < 4) std::this_thread::yield();  // ends only when all four hold a range
  });
  CHECK(inside == 4);
}

TEST_CASE("a writer gets its turn under readers that never leave a gap", "[cache]") {
  LayerCache cache = make_layer();
  need(cache.write_batch(whole_batch(cache.row_bytes(), 1).entries()));
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  in_threads(5, [&](std::size_t thread) {
    if (thread == 0) {
      for (std::uint64_t version = 2; version < 30; ++version) {
        wrong += !cache.write_batch(whole_batch(cache.row_bytes(), version).entries());
      }
      done = true;
      return;
    }
    while (!done) {
      const Result<LayerRange> range = cache.read_range(0, tokens);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (!range) return;
    }
  });
  CHECK(wrong == 0);
  CHECK(cache.length() == tokens);
}

TEST_CASE("a held range keeps writers out, but not readers that its holder waits for", "[cache]") {
  LayerCache cache = make_layer();
  need(cache.write_batch(whole_batch(cache.row_bytes(), 1).entries()));
  std::atomic<bool> written = false;
  std::thread writer;
  {
    const LayerRange held = need(cache.read_range(0, tokens));
    writer = std::thread([&] {
      need(cache.write_batch(whole_batch(cache.row_bytes(), 2).entries()));
      written = true;
    });
    sleep_ms(50);  // so that the writer most likely waits; right either way
    for (int i = 0; i < 3; ++i) {
      std::thread reader([&] { need(cache.read(0)); });
      reader.join();  // would never end if the waiting writer kept readers out for good
    }
    const LayerRange again = need(cache.read(1));
    CHECK_FALSE(written);
    const Versions found = versions_in(held, cache.row_bytes());
    CHECK(found.lowest == 1);
    CHECK(found.highest == 1);
  }
  writer.join();
  CHECK(versions_in(need(cache.read_range(0, tokens)), cache.row_bytes()).lowest == 2);
}
