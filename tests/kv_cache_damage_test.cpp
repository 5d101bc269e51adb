#include "catch.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>
#include <algorithm>
#include <cstring>
#include <esker/kv_cache.hpp>
#include <filesystem>
#include <iostream>
#include <optional>
#include <random>

#include "support/disk.hpp"
#include "support/sequence.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

/// Files that are not as they were written: copies, power cuts, damage, malice. What is shown is
/// right or is not shown.

namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t live_offset = 32'768;
constexpr std::uint64_t records_offset = 36'864;
constexpr std::uint64_t sums_offset = 45'056;

CacheFileOptions reading() {
  CacheFileOptions options;
  options.access = CacheAccess::read;
  return options;
}

void write_private(const std::string& path, std::span<const std::byte> bytes) {
  write_file(path, bytes);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

/// A new file with these bytes: another inode, as after `cp`.
void replace(const std::string& path, std::span<const std::byte> bytes) {
  write_private(path + ".new", bytes);
  fs::rename(path + ".new", path);
}

Sequence opened(const std::string& path, const CacheFileOptions& options = {}) {
  return sequence_of(need(KvCache::open(path, options)));
}

/// Rewrites bytes of a header so that its checksum holds.
void forge(std::vector<std::byte>& file, std::uint64_t offset, std::span<const std::byte> bytes) {
  std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(offset));
  const std::uint64_t sum = XXH3_64bits(file.data(), live_offset - 8);
  std::memcpy(file.data() + live_offset - 8, &sum, sizeof sum);
}

/// What the test knows of a cache at its last sync.
struct Synced {
  std::vector<std::byte> file;
  Sequence sequence;
  std::uint32_t lowest = 0;  ///< positions that were dropped to since
};

struct Writer {
  std::string path;
  std::optional<KvCache> cache;
  Sequence sequence;
  std::optional<Synced> synced;
  std::vector<Sequence> committed;  ///< whatever was committed since

  void note() {
    committed.push_back(sequence);
    if (synced) synced->lowest = std::min(synced->lowest, sequence.tokens());
  }
  void sync() {
    need(cache->sync());
    synced = Synced{read_file(path), sequence, sequence.tokens()};
    committed = {sequence};
  }
  void reopen() {
    cache.reset();
    cache = need(KvCache::open(path));
    REQUIRE(sequence_of(*cache).states() == sequence.states());
  }
};

void work(Writer& writer, std::mt19937_64& random, std::uint32_t room) {
  const std::uint64_t dice = random() % 100;
  const auto more = static_cast<std::uint32_t>(1 + random() % 40);
  if (dice < 15 || writer.sequence.tokens() + more > room) {
    const std::uint32_t length = writer.sequence.tokens();
    const auto fewer = static_cast<std::uint32_t>(random() % (length / (dice % 3 + 1) + 1));
    need(writer.cache->truncate(length - fewer));
    writer.sequence.truncate(length - fewer);
  } else if (dice < 17) {
    need(writer.cache->clear());
    writer.sequence.truncate(0);
  } else if (dice < 25) {
    writer.sync();
  } else if (dice < 32) {
    writer.reopen();
  } else {
    need(append(*writer.cache, writer.sequence, more, random()));
  }
  writer.note();
}

/// The file as a power cut may leave it: of every page what it was at the last sync, or later.
std::vector<std::byte> cut_power(const std::vector<std::vector<std::byte>>& states,
                                 std::mt19937_64& random) {
  std::vector<std::byte> file = states.back();
  const std::uint64_t style = random() % 4;
  for (std::size_t at = 0; at < file.size(); at += page_bytes) {
    if (style == 0 || (style == 1 && random() % 8 != 0)) continue;
    if (style == 2 && random() % 8 == 0) continue;
    const auto& from = states[random() % states.size()];
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(at), page_bytes,
                file.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return file;
}

}  // namespace

TEST_CASE("a copied cache holds all tokens when it was closed, those of the last sync when not",
          "[cache]") {
  const TempDir dir(GENERATE(Place::memory, Place::disk));
  Sequence sequence;
  KvCache cache = need(KvCache::create(dir / "c", cache_geometry(), 300));
  fs::copy_file(dir / "c", dir / "never");
  CHECK(opened(dir / "never").tokens() == 0);
  need(append(cache, sequence, 100, 1));
  need(cache.sync());
  const Sequence synced = sequence;
  need(append(cache, sequence, 50, 2));
  fs::copy_file(dir / "c", dir / "open");
  CHECK(opened(dir / "open", reading()).states() == synced.states());
  CHECK(opened(dir / "open").states() == synced.states());
  { const KvCache closed = std::move(cache); }
  fs::copy_file(dir / "c", dir / "closed");
  CHECK(opened(dir / "closed", reading()).states() == sequence.states());
  CHECK(opened(dir / "closed").states() == sequence.states());
  CHECK(opened(dir / "c").states() == sequence.states());
}

TEST_CASE("a reader that opened a copy before its writer follows the writer", "[cache]") {
  const TempDir dir;
  Sequence sequence;
  {
    KvCache cache = need(KvCache::create(dir / "c", cache_geometry(), 300));
    need(append(cache, sequence, 60, 1));
  }
  fs::copy_file(dir / "c", dir / "copy");
  const KvCache reader = need(KvCache::open(dir / "copy", reading()));
  CHECK(sequence_of(reader).states() == sequence.states());
  KvCache writer = need(KvCache::open(dir / "copy"));
  CHECK(sequence_of(reader).states() == sequence.states());
  need(writer.truncate(20));
  sequence.truncate(20);
  need(append(writer, sequence, 90, 3));
  CHECK(sequence_of(reader).states() == sequence.states());
}

TEST_CASE("after a power cut a cache holds the tokens of its last sync, and never a wrong row",
          "[cache]") {
  constexpr std::uint32_t room = 600;
  const char* wanted = std::getenv("ESKER_TEST_CUTS");
  const int rounds = wanted != nullptr ? std::stoi(wanted) : 300;
  const std::uint64_t seed = GENERATE(1U, 2U, 3U);
  std::mt19937_64 random(seed);
  const TempDir dir;
  Writer writer;
  writer.path = dir / "c";
  writer.cache = need(KvCache::create(writer.path, cache_geometry(), room));
  int whole = 0;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(seed, round);
    writer.sync();
    std::vector<std::vector<std::byte>> states{writer.synced->file};
    for (std::uint64_t steps = random() % 10; steps > 0; --steps) {
      const std::uint64_t syncs = writer.committed.size();
      work(writer, random, room);
      if (writer.committed.size() <= syncs) states = {writer.synced->file};
      if (random() % 3 == 0) states.push_back(read_file(writer.path));
    }
    states.push_back(read_file(writer.path));
    writer.cache.reset();
    if (random() % 2 == 0) states.push_back(read_file(writer.path));
    replace(writer.path, cut_power(states, random));

    const Sequence seen = opened(writer.path, reading());
    writer.cache = need(KvCache::open(writer.path));
    writer.sequence = sequence_of(*writer.cache);
    REQUIRE(seen.states() == writer.sequence.states());
    const std::uint32_t promised = writer.synced->lowest;
    CAPTURE(promised, writer.sequence.tokens());
    REQUIRE(writer.sequence.tokens() >= promised);
    REQUIRE(writer.sequence.shares(writer.synced->sequence, promised));
    REQUIRE(std::any_of(writer.committed.begin(), writer.committed.end(), [&](const Sequence& one) {
      return one.shares(writer.sequence, writer.sequence.tokens());
    }));
    if (promised == writer.synced->sequence.tokens() && promised > 0) ++whole;
    writer.committed = {writer.sequence};
    writer.synced.reset();
  }
  CHECK(whole > rounds / 10);
}

TEST_CASE("a cache with any byte of its pages flipped is refused by name, or right and no longer",
          "[cache]") {
  const TempDir dir;
  const std::string path = dir / "c";
  Sequence sequence;
  {
    KvCache cache = need(KvCache::create(path, cache_geometry(), 40));
    need(append(cache, sequence, 10, 1));
    need(cache.sync());
    need(append(cache, sequence, 10, 2));
  }
  const auto good = read_file(path);
  const bool copied = GENERATE(false, true);
  if (copied) replace(path, good);
  std::vector<std::uint64_t> places;
  for (std::uint64_t at = 0; at < 700; ++at) places.push_back(at);
  for (std::uint64_t at = 700; at < live_offset; at += 97) places.push_back(at);
  for (std::uint64_t at = live_offset - 8; at < live_offset + 140; ++at) places.push_back(at);
  for (std::uint64_t at = 0; at < 140; ++at) {
    places.push_back(records_offset + at);
    places.push_back(records_offset + page_bytes + at);
  }
  for (std::uint64_t at = sums_offset; at < good.size(); at += 31) places.push_back(at);
  std::uint64_t refused = 0;
  for (const std::uint64_t at : places) {
    CAPTURE(copied, at);
    // In place for the same inode, which a live page stands for; else a new copy each time.
    if (copied) replace(path, good);
    flip_byte(path, at, 1U << (at % 8));
    // Rows are protected across boots and copies; within a boot the kernel vouches for them.
    const bool row = at >= sums_offset + 2 * page_bytes && !copied;
    if (!row) {
      const auto reader = KvCache::open(path, reading());
      if (!reader) {
        ++refused;
        REQUIRE_THAT(reader.error().message, contains(path + ": "));
        REQUIRE_FALSE(KvCache::open(path));
      } else {
        const Sequence seen = sequence_of(*reader);
        REQUIRE(seen.shares(sequence, seen.tokens()));
        REQUIRE((at >= live_offset || seen.tokens() == 20));
        if (copied) REQUIRE(opened(path).states() == seen.states());
      }
    }
    if (!copied) overwrite(path, 0, good);
  }
  CHECK(refused > 700);
}

TEST_CASE("a cache file that is too short, too long or no cache is refused by name", "[cache]") {
  const TempDir dir;
  const std::string path = dir / "c";
  { const KvCache made = need(KvCache::create(path, cache_geometry(), 40)); }
  const auto good = read_file(path);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{4096}, std::size_t{32'767},
        std::size_t{32'768}, std::size_t{45'056}, good.size() - 4096, good.size() - 1,
        good.size() + 1, good.size() + 4096}) {
    CAPTURE(size);
    auto bytes = good;
    bytes.resize(size);
    replace(path, bytes);
    for (const CacheFileOptions& options : {CacheFileOptions{}, reading()}) {
      const auto refused = KvCache::open(path, options);
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == Errc::corrupt);
      CHECK_THAT(refused.error().message, contains(path + ": "));
    }
  }
  std::vector<std::byte> text(good.size(), std::byte{'x'});
  replace(path, text);
  CHECK_THAT(KvCache::open(path).error().message, contains("magic is something else"));
}

TEST_CASE("a header that checks but lies is refused before anything is made of it", "[cache]") {
  const TempDir dir;
  const std::string path = dir / "c";
  {
    KvCache cache = need(KvCache::create(path, cache_geometry(), 40));
    Sequence sequence;
    need(append(cache, sequence, 10, 1));
  }
  const auto good = read_file(path);
  std::mt19937_64 random(4);
  std::uint64_t refused = 0;
  for (std::uint64_t offset = 0; offset < 320; offset += 4) {
    for (const std::uint32_t value : {0U, 1U, 2U, 0x7FU, 0x80000000U, UINT32_MAX, 1U << 24,
                                      (1U << 24) + 1U, static_cast<std::uint32_t>(random())}) {
      CAPTURE(offset, value);
      auto bytes = good;
      forge(bytes, offset, std::as_bytes(std::span(&value, 1)));
      replace(path, bytes);
      const auto cache = KvCache::open(path, random() % 2 == 0 ? CacheFileOptions{} : reading());
      if (cache) {
        static_cast<void>(sequence_of(*cache));
      } else {
        ++refused;
        REQUIRE_THAT(cache.error().message, contains(path + ": "));
      }
    }
  }
  CHECK(refused > 300);
  const auto of_field = [&](std::uint64_t offset, std::uint64_t value) {
    auto bytes = good;
    forge(bytes, offset, std::as_bytes(std::span(&value, 1)));
    replace(path, bytes);
    return KvCache::open(path).error();
  };
  CHECK(of_field(16, 1).code == Errc::incompatible);
  CHECK_THAT(of_field(16, 1).message, contains("incompatible_features"));
  CHECK_THAT(of_field(24, 1).message, contains("read_only_features"));
  CHECK_THAT(of_field(64, 1).message, contains("file_bytes"));
  CHECK_THAT(of_field(80, 1).message, contains("rows_offset"));
  CHECK_THAT(of_field(88, 1).message, contains("token_bytes"));
  auto newer = good;
  const std::uint32_t version = 2;
  forge(newer, 12, std::as_bytes(std::span(&version, 1)));
  replace(path, newer);
  CHECK_THAT(KvCache::open(path).error().message, contains("read_version is 2"));
  auto unknown = good;
  const std::uint64_t bit = 1;
  forge(unknown, 24, std::as_bytes(std::span(&bit, 1)));
  replace(path, unknown);
  CHECK(KvCache::open(path, reading()));
}

TEST_CASE("random bytes in the pages behind the header never make a wrong row or a crash",
          "[cache]") {
  const TempDir dir;
  const std::string path = dir / "c";
  Sequence sequence;
  {
    KvCache cache = need(KvCache::create(path, cache_geometry(), 40));
    need(append(cache, sequence, 30, 1));
    need(cache.sync());
  }
  const auto good = read_file(path);
  std::mt19937_64 random(8);
  for (int round = 0; round < 3'000; ++round) {
    auto bytes = good;
    for (std::uint64_t changes = 1 + random() % 6; changes > 0; --changes) {
      const std::uint64_t page = live_offset + random() % 5 * page_bytes;
      const std::uint64_t at = page + random() % 128;
      bytes[at] = static_cast<std::byte>(random());
    }
    replace(path, bytes);
    const Sequence seen = opened(path);
    CAPTURE(round);
    REQUIRE(seen.shares(sequence, seen.tokens()));
  }
}
