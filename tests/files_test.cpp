#include "catch.hpp"

#include <algorithm>
#include <filesystem>

#include "support/disk.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t prompts = 12;

/// A closed store with several segments: prompts 0…11 of 1,000 tokens.
void make_closed(const std::string& path) {
  Store store = make_store(path);
  for (std::uint64_t seed = 0; seed < prompts; ++seed) put(store, prompt(1'000, seed));
}

/// Tokens found over all prompts, each checked byte by byte; damage reported by a load is a miss.
std::uint64_t found(const Store& store) {
  std::uint64_t sum = 0;
  for (std::uint64_t seed = 0; seed < prompts; ++seed) {
    const TokenList tokens = prompt(1'000, seed);
    while (true) {
      const Prefix prefix = store.lookup(tokens);
      const Result<void> verified = prefix.verify();
      if (!verified && verified.error().code == Errc::corrupt) continue;
      need(verified);
      const std::string problem = wrong(prefix, store.geometry(), tokens);
      if (!problem.empty()) throw std::runtime_error(problem);
      sum += prefix.tokens();
      break;
    }
  }
  return sum;
}

/// Opens the store, whatever was done to it: an error with words, or a store that works and is
/// never wrong. Returns the tokens found.
std::uint64_t survives(const std::string& path) {
  Result<Store> store = Store::open(path);
  if (!store) {
    CAPTURE(store.error().message);
    CHECK_FALSE(store.error().message.empty());
    return 0;
  }
  const std::uint64_t sum = found(*store);
  put(*store, prompt(300, 500));
  CHECK(get(*store, prompt(300, 500)) == 300);
  return sum;
}

void rebuild_next_time(const std::string& path) { fs::remove(path + "/control"); }

}  // namespace

TEST_CASE("a missing segment file costs its blocks and nothing else") {
  const TempDir dir;
  const std::string path = dir / "s";
  make_closed(path);
  const std::vector<std::string> segments = segment_files(path);
  REQUIRE(segments.size() > 2);
  const bool rebuild = GENERATE(true, false);
  const std::size_t victim = GENERATE(0U, 1U);
  fs::remove(segments[victim]);
  if (rebuild) rebuild_next_time(path);
  const std::uint64_t sum = survives(path);
  CHECK(sum < prompts * 1'000);
  CHECK(sum > 0);
}

TEST_CASE("a truncated or extended segment file is refused as such and costs its blocks only") {
  const bool rebuild = GENERATE(true, false);
  const std::int64_t change = GENERATE(-1, 1, -4'096, -200'000, -1'000'000'000, 4'096);
  CAPTURE(rebuild, change);
  const TempDir dir;
  const std::string path = dir / "s";
  make_closed(path);
  const std::string victim = segment_files(path)[1];
  const auto size = static_cast<std::int64_t>(fs::file_size(victim));
  fs::resize_file(victim, static_cast<std::uintmax_t>(std::max<std::int64_t>(0, size + change)));
  if (rebuild) rebuild_next_time(path);
  const std::uint64_t sum = survives(path);
  CHECK(sum < prompts * 1'000);
  CHECK(sum > 0);
}

TEST_CASE("segment files that changed places are never read as each other") {
  const TempDir dir;
  const std::string path = dir / "s";
  make_closed(path);
  const std::vector<std::string> segments = segment_files(path);
  fs::rename(segments[0], path + "/keep");
  fs::rename(segments[1], segments[0]);
  fs::rename(path + "/keep", segments[1]);
  if (GENERATE(true, false)) rebuild_next_time(path);
  survives(path);
}

TEST_CASE("a segment file of another store is never read") {
  const TempDir dir;
  const std::string path = dir / "s";
  make_closed(path);
  make_closed(dir / "other");
  fs::copy_file(segment_files(dir / "other")[1], segment_files(path)[1],
                fs::copy_options::overwrite_existing);
  if (GENERATE(true, false)) rebuild_next_time(path);
  CHECK(survives(path) < prompts * 1'000);
}

TEST_CASE("garbage in the place of a segment file is never read") {
  const TempDir dir;
  const std::string path = dir / "s";
  make_closed(path);
  const std::string victim = segment_files(path)[1];
  const unsigned fill = GENERATE(0x00U, 0xFFU, 0x5AU);
  const std::vector<std::byte> garbage(fs::file_size(victim), static_cast<std::byte>(fill));
  overwrite(victim, 0, garbage);
  if (GENERATE(true, false)) rebuild_next_time(path);
  CHECK(survives(path) < prompts * 1'000);
}

TEST_CASE("two block headers that changed places are misses") {
  const TempDir dir;
  const std::string path = dir / "s";
  make_closed(path);
  const std::vector<DiskBlock> blocks = blocks_of(segment_files(path)[0]);
  REQUIRE(blocks.size() > 10);
  const std::vector<std::byte> file = read_file(blocks[0].file);
  const auto header = [&](const DiskBlock& block) {
    return std::span(file).subspan(block.header_offset, block.header_bytes);
  };
  overwrite(blocks[3].file, blocks[3].header_offset, header(blocks[9]));
  overwrite(blocks[9].file, blocks[9].header_offset, header(blocks[3]));
  if (GENERATE(true, false)) rebuild_next_time(path);
  CHECK(survives(path) < prompts * 1'000);
}

TEST_CASE("the control file is rebuilt when it is absent, cut, garbage or of another life") {
  const TempDir dir;
  const std::string path = dir / "s";
  make_closed(path);
  const std::string control = path + "/control";
  std::vector<std::byte> bytes = read_file(control);
  SECTION("absent") { fs::remove(control); }
  SECTION("empty") { write_file(control, {}); }
  SECTION("cut") { fs::resize_file(control, fs::file_size(control) - 4'096); }
  SECTION("longer") { fs::resize_file(control, fs::file_size(control) + 4'096); }
  SECTION("zeros") { write_file(control, std::vector<std::byte>(bytes.size())); }
  SECTION("ones") { write_file(control, std::vector<std::byte>(bytes.size(), std::byte{0xFF})); }
  SECTION("another boot") { flip_byte(control, 20); }
  SECTION("another store") { flip_byte(control, 40); }
  SECTION("another layout version") { flip_byte(control, 8); }
  SECTION("another file") {
    fs::remove(control);
    write_file(control, bytes);
    fs::permissions(control, fs::perms::owner_read | fs::perms::owner_write);
  }
  SECTION("a directory") {
    fs::remove(control);
    fs::create_directory(control);
  }
  const Result<Store> store = Store::open(path);
  if (store) {
    CHECK(found(*store) == prompts * 1'000);
  } else {
    CHECK_THAT(store.error().message, contains("control"));
    CHECK(fs::is_directory(control));
  }
}

TEST_CASE("a rebuilt control file leaves an event") {
  const TempDir dir;
  const std::string path = dir / "s";
  make_closed(path);
  rebuild_next_time(path);
  const Store store = need(Store::open(path));
  bool told = false;
  for (const Event& event : store.events()) told = told || event.kind == EventKind::control_rebuilt;
  CHECK(told);
}

TEST_CASE("any damaged byte in the header page of control gives a working store") {
  const TempDir dir;
  const std::string path = dir / "s";
  make_closed(path);
  for (std::uint64_t at = 0; at < 256; ++at) {
    CAPTURE(at);
    flip_byte(path + "/control", at, 1U << (at % 8));
    const Store store = need(Store::open(path));
    REQUIRE(store.match(prompt(1'000, 3)) == 1'000);
  }
}

TEST_CASE("garbage in the words, hints and rows of control is never a wrong byte") {
  const TempDir dir;
  const std::string path = dir / "s";
  make_closed(path);
  const std::uint64_t size = fs::file_size(path + "/control");
  std::uint64_t state = 12345;
  for (std::uint64_t round = 0; round < 60; ++round) {
    CAPTURE(round);
    for (int i = 0; i < 200; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      flip_byte(path + "/control", 4'096 + (state >> 16) % (size - 4'096),
                1U << ((state >> 8) % 8));
    }
    const Store store = need(Store::open(path));
    found(store);
    Store writer = need(Store::open(path));
    const Result<std::uint32_t> stored = try_put(writer, prompt(50, 900 + round));
    if (stored) CHECK(get(writer, first(prompt(50, 900 + round), *stored)) <= 50);
  }
  rebuild_next_time(path);
  CHECK(found(need(Store::open(path))) <= prompts * 1'000);
}

TEST_CASE("a copy of a store opens and serves, and lives its own life") {
  const TempDir dir;
  make_closed(dir / "s");
  copy_tree(dir / "s", dir / "copy");
  CHECK(survives(dir / "copy") == prompts * 1'000);
  CHECK(survives(dir / "s") == prompts * 1'000);
}

TEST_CASE("a copy of a store that is in use opens and serves") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(1'000, 0));
  const Prefix pinned = store.lookup(prompt(1'000, 0));
  const Reservation reserved = need(store.reserve(prompt(100, 7)));
  copy_tree(dir / "s", dir / "copy");
  Store copy = need(Store::open(dir / "copy"));
  CHECK(get(copy, prompt(1'000, 0)) == 1'000);
  CHECK(copy.stats().blocks_reserved == 0);
  CHECK(copy.stats().blocks_pinned == 0);
  CHECK(copy.stats().seats_taken == 1);
}

TEST_CASE("one damaged superblock slot is no loss, two are an error that names the file") {
  const TempDir dir;
  const std::string path = dir / "s";
  make_closed(path);
  const std::uint64_t byte = GENERATE(0U, 8U, 50U, 100U, 260U, 300U, 32'765U);
  CAPTURE(byte);
  SECTION("the first") {
    flip_byte(path + "/esker", byte);
    CHECK(survives(path) == prompts * 1'000);
  }
  SECTION("the second") {
    flip_byte(path + "/esker", 32'768 + byte);
    CHECK(survives(path) == prompts * 1'000);
  }
  SECTION("both") {
    flip_byte(path + "/esker", byte);
    flip_byte(path + "/esker", 32'768 + byte);
    const Result<Store> store = Store::open(path);
    REQUIRE_FALSE(store);
    CHECK(store.error().code == Errc::corrupt);
    CHECK_THAT(store.error().message, contains("/esker"));
    CHECK(fs::exists(segment_files(path)[0]));
  }
}

TEST_CASE("a cut or empty superblock is an error that names the file") {
  const TempDir dir;
  const std::string path = dir / "s";
  make_closed(path);
  fs::resize_file(path + "/esker", GENERATE(0U, 1U, 4'096U, 32'768U - 1U));
  const Result<Store> store = Store::open(path);
  REQUIRE_FALSE(store);
  CHECK(store.error().code == Errc::corrupt);
  CHECK_THAT(store.error().message, contains("/esker"));
}

TEST_CASE("links in the place of files are not followed") {
  const TempDir dir;
  const std::string path = dir / "s";
  make_closed(path);
  const std::string name = GENERATE("control", "lock", "esker", "segments/00001");
  fs::rename(path + "/" + name, dir / "elsewhere");
  fs::create_symlink(dir / "elsewhere", path + "/" + name);
  const std::vector<std::byte> before = read_file(dir / "elsewhere");
  survives(path);
  CHECK(read_file(dir / "elsewhere") == before);
}
