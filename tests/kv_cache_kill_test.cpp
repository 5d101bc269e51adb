#include "catch.hpp"

#include <array>
#include <csignal>
#include <esker/kv_cache.hpp>
#include <filesystem>
#include <iostream>
#include <random>
#include <sstream>

#include "support/process.hpp"
#include "support/sequence.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

namespace {

constexpr int wrong_bytes_status = 42;
constexpr std::uint32_t room = 400;

CacheFileOptions reading() {
  CacheFileOptions options;
  options.access = CacheAccess::read;
  return options;
}

std::uint64_t last_state(const Sequence& sequence) {
  return sequence.tokens() == 0 ? 0 : sequence.states().back();
}

/// Arguments: path, seed. Says "drop N" before it drops positions and "now LENGTH STATE" after
/// every change, for ever.
int write_cache(const Arguments& arguments) {
  std::mt19937_64 random(std::stoul(arguments[1]));
  KvCache cache = need(KvCache::open(arguments[0]));
  Sequence sequence = sequence_of(cache);
  const bool quiet = arguments.size() > 2;
  const auto now = [&] {
    if (quiet) return;
    say("now " + std::to_string(sequence.tokens()) + " " + std::to_string(last_state(sequence)));
  };
  const auto dropping = [&](std::uint32_t tokens) {
    if (!quiet) say("drop " + std::to_string(tokens));
    sequence.truncate(tokens);
  };
  say("working");
  now();
  for (;;) {
    const std::uint64_t dice = random() % 100;
    const auto more = static_cast<std::uint32_t>(1 + random() % 20);
    if (sequence.tokens() + more > room || dice < 12) {
      const auto tokens = static_cast<std::uint32_t>(random() % (sequence.tokens() + 1));
      dropping(tokens);
      need(cache.truncate(tokens));
    } else if (dice < 14) {
      dropping(0);
      need(cache.clear());
    } else if (dice < 20) {
      const KvMark mark = cache.mark();
      Sequence draft = sequence;
      need(append(cache, draft, more, random()));
      dropping(sequence.tokens());
      need(cache.rollback(mark));
    } else if (dice < 23) {
      const KvSnapshot snapshot = need(cache.snapshot());
      const Sequence kept = sequence;
      dropping(0);
      need(cache.restore(snapshot));
      sequence = kept;
    } else if (dice < 25) {
      need(cache.sync());
    } else {
      need(append(cache, sequence, more, random(), dice % 2 == 0));
    }
    now();
  }
}
const RoleName write_cache_role("write_cache", &write_cache);

/// One look: rows of one plane, or all planes at one moment.
std::string look(const KvCache& cache, std::mt19937_64& random, std::uint64_t& good) {
  const Geometry& geometry = cache.geometry();
  if (random() % 4 == 0) {
    KvCache copy = need(KvCache::in_memory(geometry, room));
    const auto snapshot = cache.snapshot();
    if (!snapshot) return snapshot.error().code == Errc::busy ? "" : snapshot.error().message;
    need(copy.restore(*snapshot));
    static_cast<void>(sequence_of(copy));
    ++good;
    return "";
  }
  const auto layer = static_cast<std::uint32_t>(random() % 3);
  const std::uint32_t length = cache.length();
  if (length == 0) return "";
  const auto begin = static_cast<std::uint32_t>(random() % length);
  std::vector<std::byte> out(std::size_t{length - begin} * geometry.row_bytes(layer, Plane::key));
  const auto done = cache.read(layer, Plane::key, {begin, length}, out);
  // The writer dropped what was asked for, or kept dropping.
  if (!done && (done.error().code == Errc::busy || done.error().code == Errc::invalid)) return "";
  if (!done) return done.error().message;
  ++good;
  return shown_by(out, geometry.row_bytes(layer, Plane::key), {layer, Plane::key, begin}).problem;
}

/// Arguments: path, seed. Checks every row that it sees until it is killed.
int watch_cache(const Arguments& arguments) {
  std::mt19937_64 random(std::stoul(arguments[1]));
  std::uint64_t good = 0;
  bool told = false;
  for (;;) {
    const KvCache cache = need(KvCache::open(arguments[0], reading()));
    for (int i = 0; i < 500; ++i) {
      const std::string problem = look(cache, random, good);
      if (!problem.empty()) {
        std::cerr << "WRONG: " << problem << std::endl;
        std::_Exit(wrong_bytes_status);
      }
      if (good > 200 && !told) say("reading");
      told = told || good > 200;
    }
  }
}
const RoleName watch_cache_role("watch_cache", &watch_cache);

/// What a writer said before it was killed.
struct Said {
  std::uint32_t length = 0;
  std::uint64_t state = 0;
  std::uint32_t lowest = 0;  ///< positions that it may have dropped to since
};

Said hear_out(Child& child) {
  Said said;
  while (const auto line = child.hear_or_end()) {
    std::istringstream words(*line);
    std::string word;
    words >> word;
    if (word == "now" && words >> said.length >> said.state) said.lowest = said.length;
    std::uint32_t tokens = 0;
    if (word == "drop" && words >> tokens) said.lowest = std::min(said.lowest, tokens);
  }
  return said;
}

std::uint64_t rounds_wanted(std::uint64_t usual) {
  const char* wanted = std::getenv("ESKER_TEST_KILLS");
  return wanted != nullptr ? std::stoul(wanted) : usual;
}

}  // namespace

TEST_CASE(
    "after SIGKILL a cache holds every token that its writer said it had, and readers "
    "never see rows of two sequences",
    "[cache]") {
  const TempDir dir(GENERATE(Place::memory, Place::disk));
  const std::string path = dir / "c";
  { const KvCache made = need(KvCache::create(path, cache_geometry(), room)); }
  std::vector<Child> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back("watch_cache", Arguments{path, std::to_string(i)});
  std::mt19937_64 random(11);
  std::uint64_t held = 0;
  const std::uint64_t rounds = rounds_wanted(60);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    Child writer("write_cache", {path, std::to_string(round)});
    REQUIRE(writer.hear() == "working");
    sleep_ms(static_cast<unsigned>(random() % 12));
    ::kill(writer.pid(), SIGKILL);
    const Said said = hear_out(writer);
    REQUIRE(writer.finish() == 128 + SIGKILL);
    const KvCache cache = need(KvCache::open(path));
    const Sequence found = sequence_of(cache);
    CAPTURE(round, said.length, said.lowest, found.tokens());
    REQUIRE(found.tokens() >= said.lowest);
    if (found.tokens() >= said.length && said.length > 0 && said.lowest == said.length) {
      REQUIRE(found.states()[said.length - 1] == said.state);
      ++held;
    }
  }
  CHECK(held > rounds / 4);
  for (Child& reader : readers) {
    CHECK(reader.hear() == "reading");
    ::kill(reader.pid(), SIGTERM);
    CHECK(reader.finish() == 128 + SIGTERM);
  }
}

TEST_CASE("readers under a writer that never rests see only rows that belong together", "[cache]") {
  const TempDir dir;
  const std::string path = dir / "c";
  { const KvCache made = need(KvCache::create(path, cache_geometry(), room)); }
  Child writer("write_cache", {path, "5", "quiet"});
  REQUIRE(writer.hear() == "working");
  std::vector<Child> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back("watch_cache", Arguments{path, std::to_string(i)});
  for (Child& reader : readers) CHECK(reader.hear() == "reading");
  sleep_ms(1'500);
  for (Child& reader : readers) {
    ::kill(reader.pid(), SIGTERM);
    CHECK(reader.finish() == 128 + SIGTERM);
  }
  CHECK(writer.kill() == 128 + SIGKILL);
}

TEST_CASE("a process that is killed while it makes a cache leaves a whole one or nothing",
          "[cache]") {
  const TempDir dir(Place::disk);
  std::mt19937_64 random(3);
  for (int round = 0; round < 30; ++round) {
    const std::string path = dir / ("c" + std::to_string(round));
    Child maker("make_cache", {path});
    maker.hear();
    sleep_ms(static_cast<unsigned>(random() % 6));
    maker.kill();
    if (!fs::exists(path)) continue;
    KvCache cache = need(KvCache::open(path));
    CHECK(cache.empty());
    CHECK(cache.max_tokens() == 20'000);
  }
  for (const auto& entry : fs::directory_iterator(dir.path())) {
    CHECK(entry.path().filename().string().starts_with("c"));
  }
}

namespace {

/// Argument: path.
int make_cache(const Arguments& arguments) {
  say("making");
  const KvCache cache = need(KvCache::create(arguments[0], cache_geometry(), 20'000));
  listen();
  return 0;
}
const RoleName make_cache_role("make_cache", &make_cache);

}  // namespace
