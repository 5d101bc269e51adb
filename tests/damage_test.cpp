#include "catch.hpp"

#include <filesystem>

#include "support/disk.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// Flips a byte in the row of one token, in the file, under the running store.
void damage_row(const std::string& path, const TokenList& tokens, std::uint32_t token,
                std::uint32_t layer = 2, Plane plane = Plane::value) {
  const DiskBlock block = find_block(path, tokens, token / 16 * 16);
  flip_byte(block.file, row_offset(block, 16, layer, plane, token % 16) + 3);
}

}  // namespace

TEST_CASE(
    "a flipped payload byte is reported before it is used, and its block never served again") {
  const TempDir dir(GENERATE(Place::memory, Place::disk));
  const bool by_view = GENERATE(true, false);
  const TokenList tokens = prompt(100, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  damage_row(dir / "s", tokens, 40);
  Store reader = need(Store::open(dir / "s"));
  {
    const Prefix prefix = reader.lookup(tokens);
    CHECK(prefix.tokens() == 100);
    std::vector<std::byte> out(100 * 57);
    const Result<void> result = by_view ? prefix.view(2, Plane::value).map([](const Runs&) {})
                                        : prefix.copy(2, Plane::value, {0, 100}, std::span(out));
    REQUIRE_FALSE(result);
    CHECK(result.error().code == Errc::corrupt);
    CHECK_THAT(result.error().message, contains("00000"));
  }
  CHECK(get(reader, tokens) == 32);
  CHECK(get(store, tokens) == 32);
  CHECK(reader.stats().counters.bad_blocks == 1);
  put(reader, tokens);
  CHECK(get(store, tokens) == 100);
}

TEST_CASE("damage in one plane does not spoil a load that fails before the engine uses a byte") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  damage_row(dir / "s", tokens, 99, 0, Plane::key);
  const Store reader = need(Store::open(dir / "s"));
  const Prefix prefix = reader.lookup(tokens);
  std::vector<std::byte> out(100 * 40);
  CHECK(prefix.copy(0, Plane::value, {}, std::span(out)).has_value());
  CHECK(prefix.verify().error().code == Errc::corrupt);
}

TEST_CASE("a range is verified by whole blocks: damage beside the wanted rows counts too") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  damage_row(dir / "s", tokens, 40, 0, Plane::key);
  const Store reader = need(Store::open(dir / "s"));
  const Prefix prefix = reader.lookup(tokens);
  std::vector<std::byte> out(34);
  CHECK(prefix.copy(0, Plane::key, {33, 34}, std::span(out)).error().code == Errc::corrupt);
}

TEST_CASE("with verification at lookup a damaged block is a shorter hit") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  damage_row(dir / "s", tokens, 40);
  Options options;
  options.verify = Verify::at_lookup;
  const Store reader = need(Store::open(dir / "s", options));
  CHECK(get(reader, tokens) == 32);
  CHECK(reader.stats().counters.bad_blocks == 1);
}

TEST_CASE("with verification always damage is found though the block was good before") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  Options options;
  options.verify = Verify::always;
  const Store reader = need(Store::open(dir / "s", options));
  const Prefix prefix = reader.lookup(tokens);
  CHECK(wrong(prefix, reader.geometry(), tokens) == "");
  damage_row(dir / "s", tokens, 40);
  CHECK(prefix.view(2, Plane::value).error().code == Errc::corrupt);
}

TEST_CASE("after the control file was rebuilt payloads are verified whatever the option says") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  {
    Store store = make_store(dir / "s");
    put(store, tokens);
  }
  damage_row(dir / "s", tokens, 40);
  std::filesystem::remove(dir / "s/control");
  Options options;
  options.verify = Verify::never;
  const Store store = need(Store::open(dir / "s", options));
  const Prefix prefix = store.lookup(tokens);
  CHECK(prefix.view(2, Plane::value).error().code == Errc::corrupt);
}

TEST_CASE("any flipped byte of a block header is a miss from that block on, never wrong bytes") {
  const TokenList tokens = prompt(100, 1);
  std::uint32_t header_bytes = 1;
  for (std::uint32_t at = 0; at < header_bytes; ++at) {
    CAPTURE(at);
    const TempDir dir;
    Store store = make_store(dir / "s");
    put(store, tokens);
    const DiskBlock block = find_block(dir / "s", tokens, 48);
    header_bytes = block.header_bytes;
    flip_byte(block.file, block.header_offset + at, 1U << (at % 8));
    const Store reader = need(Store::open(dir / "s"));
    const Prefix prefix = reader.lookup(tokens);
    CHECK((prefix.tokens() == 48 || prefix.tokens() == 100));
    const Result<void> verified = prefix.verify();
    if (verified) {
      CHECK(wrong(prefix, reader.geometry(), tokens) == "");
    } else {
      CHECK(verified.error().code == Errc::corrupt);
      CHECK(get(reader, tokens) == 48);
    }
  }
  CHECK(header_bytes >= 192 + 64 + 5 * 8);
}

TEST_CASE("a damaged block is counted and logged as an event without tokens") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  damage_row(dir / "s", tokens, 40);
  const Store reader = need(Store::open(dir / "s"));
  CHECK(reader.lookup(tokens).verify().error().code == Errc::corrupt);
  std::size_t found = 0;
  for (const Event& event : store.events()) found += event.kind == EventKind::block_bad ? 1U : 0U;
  CHECK(found == 1);
}

TEST_CASE("verify finds damage in headers and in payloads and names the file") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  put(store, prompt(100, 2));
  const VerifyReport clean = need(store.verify());
  CHECK(clean.damage.empty());
  CHECK(clean.blocks == 14);
  CHECK(clean.changed == 0);
  damage_row(dir / "s", tokens, 40);
  const DiskBlock header = find_block(dir / "s", prompt(100, 2), 64);
  flip_byte(header.file, header.header_offset + 76);
  std::uint64_t last = 0;
  const VerifyReport report =
      need(store.verify([&](std::uint64_t done, std::uint64_t) { last = done; }));
  REQUIRE(report.damage.size() == 2);
  for (const Damage& damage : report.damage) {
    CHECK_THAT(damage.file, contains("00000"));
    CHECK_FALSE(damage.what.empty());
  }
  CHECK(last > 0);
}

TEST_CASE("verify finds a flipped byte in any plane of any stored token") {
  const TempDir dir;
  const TokenList tokens = prompt(37, 1);
  {
    Store store = make_store(dir / "s");
    put(store, tokens);
  }
  Options options;
  options.access = Access::inspect;
  const Store store = need(Store::open(dir / "s", options));
  each_plane(store.geometry(), [&](std::uint32_t layer, Plane plane) {
    for (std::uint32_t token = 0; token < 37; ++token) {
      damage_row(dir / "s", tokens, token, layer, plane);
      CAPTURE(layer, token);
      CHECK(need(store.verify()).damage.size() == 1);
      damage_row(dir / "s", tokens, token, layer, plane);
    }
  });
  CHECK(need(store.verify()).damage.empty());
}
