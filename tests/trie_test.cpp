#include "catch.hpp"

#include <climits>

#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// Length of the hit that a store with one path promises for a query that shares `shared` tokens:
/// whole blocks, and inside the next one everything once an eighth of it is shared.
std::uint32_t promised(std::uint32_t shared, std::uint32_t block_tokens) {
  const std::uint32_t rest = shared % block_tokens;
  std::uint32_t smallest = block_tokens;
  for (const std::uint32_t part : {2U, 4U, 8U}) {
    if (block_tokens / part > 0) smallest = block_tokens / part;
  }
  return rest >= smallest ? shared : shared - rest;
}

}  // namespace

TEST_CASE("a stored prompt is found byte for byte, by this handle and by others") {
  const TempDir dir(GENERATE(Place::memory, Place::disk));
  const std::uint32_t block_tokens = GENERATE(1u, 4u, 16u, 32u);
  const TokenList tokens = prompt(150, 1);
  Store store = make_store(dir / "s", small_geometry(block_tokens));
  CHECK(store.match(tokens) == 0);
  CHECK(store.lookup(tokens).empty());
  put(store, tokens);
  CHECK(store.match(tokens) == 150);
  CHECK(get(store, tokens) == 150);
  const Store other = need(Store::open(dir / "s"));
  CHECK(other.match(tokens) == 150);
  CHECK(get(other, tokens) == 150);
}

TEST_CASE("a stored prompt is found after every handle was closed") {
  const TempDir dir(GENERATE(Place::memory, Place::disk));
  const TokenList tokens = prompt(150, 1);
  {
    Store store = make_store(dir / "s");
    put(store, tokens);
  }
  CHECK(get(need(Store::open(dir / "s")), tokens) == 150);
}

TEST_CASE("a block of 1,024 tokens is stored and found") {
  const TempDir dir;
  const TokenList tokens = prompt(2'500, 1);
  Store store = make_store(dir / "s", small_geometry(1024), small_options(16 * mib));
  put(store, tokens);
  CHECK(get(store, tokens) == 2'500);
  CHECK(store.stats().blocks_ready == 3);
}

TEST_CASE("a hit is exact to the token wherever a prompt diverges from the stored one") {
  const TempDir dir;
  const std::uint32_t block_tokens = GENERATE(4u, 8u, 16u, 32u);
  const TokenList stored = prompt(3 * block_tokens, 1);
  Store store = make_store(dir / "s", small_geometry(block_tokens));
  put(store, stored);
  for (std::uint32_t shared = 0; shared < stored.size(); ++shared) {
    CAPTURE(block_tokens, shared);
    TokenList query = fork_at(stored, shared, prompt(50, 2));
    query[shared] = stored[shared] + 1;
    CHECK(store.match(query) == promised(shared, block_tokens));
    CHECK(get(store, query) == promised(shared, block_tokens));
  }
}

TEST_CASE("the beginning of a stored prompt is a hit of exactly its own length") {
  const TempDir dir;
  const TokenList stored = prompt(64, 1);
  Store store = make_store(dir / "s");
  put(store, stored);
  for (std::uint32_t length = 0; length <= stored.size(); ++length) {
    CAPTURE(length);
    CHECK(get(store, first(stored, length)) == promised(length, 16));
  }
}

TEST_CASE("a partial last block is found by prompts that end there and by longer ones") {
  const TempDir dir;
  for (std::uint32_t tail = 1; tail < 16; ++tail) {
    CAPTURE(tail);
    const TokenList stored = prompt(32 + tail, tail);
    Store store = make_store(dir / ("s" + std::to_string(tail)));
    put(store, stored);
    CHECK(get(store, stored) == 32 + tail);
    TokenList longer = fork_at(stored, 32 + tail, prompt(40, 99));
    longer[32 + tail] = 60'000;
    CHECK(get(store, longer) == (tail >= 2 ? 32 + tail : 32));
  }
}

TEST_CASE("a partial last block is superseded when it grows") {
  const TempDir dir;
  const TokenList tokens = prompt(48, 1);
  Store store = make_store(dir / "s");
  for (const std::uint32_t length : {20u, 25u, 31u, 32u, 40u, 48u}) {
    put(store, first(tokens, length));
    CAPTURE(length);
    CHECK(store.stats().blocks_ready == (length + 15) / 16);
    CHECK(get(store, first(tokens, length)) == length);
  }
  CHECK(store.stats().counters.superseded_blocks == 4);
}

TEST_CASE("two prompts that part inside a block both stay, and share what is before it") {
  const TempDir dir;
  const TokenList one = prompt(64, 1);
  const TokenList two = fork_at(one, 42, prompt(22, 2));
  Store store = make_store(dir / "s");
  put(store, one);
  Reservation reservation = need(store.reserve(two));
  CHECK(reservation.missing() == TokenRange{42, 64});
  need(write_rows(reservation, store.geometry(), Content(two), reservation.missing()));
  CHECK(need(std::move(reservation).publish()).tokens() == 64);
  CHECK(get(store, one) == 64);
  CHECK(get(store, two) == 64);
  CHECK(store.stats().blocks_ready == 6);
}

TEST_CASE("a block that was matched in part never gets children") {
  const TempDir dir;
  const TokenList one = prompt(64, 1);
  TokenList two = fork_at(one, 42, prompt(60, 2));
  Store store = make_store(dir / "s");
  put(store, one);
  put(store, two);
  TokenList cross = fork_at(one, 48, {});
  cross.insert(cross.end(), two.begin() + 48, two.end());
  CHECK(get(store, cross) == 48);
}

TEST_CASE("token ids are any 32-bit numbers") {
  const TempDir dir;
  TokenList tokens = prompt(50, 1);
  tokens[0] = INT32_MIN;
  tokens[17] = -1;
  tokens[18] = 0;
  tokens[33] = INT32_MAX;
  Store store = make_store(dir / "s");
  put(store, tokens);
  CHECK(get(store, tokens) == 50);
  CHECK(need(store.lookup(tokens).token_ids()) == tokens);
}

TEST_CASE("a prompt of equal tokens is found at every length") {
  const TempDir dir;
  const TokenList tokens(200, 0);
  Store store = make_store(dir / "s");
  put(store, tokens);
  CHECK(get(store, tokens) == 200);
  CHECK(get(store, TokenList(400, 0)) == 200);
  CHECK(get(store, first(tokens, 100)) == 100);
}

TEST_CASE("no tokens are a miss and nothing to store") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(20, 1));
  CHECK(store.match({}) == 0);
  CHECK(store.lookup({}).empty());
  const Result<Reservation> reservation = store.reserve({});
  if (reservation) CHECK(reservation->missing().empty());
  CHECK(store.stats().blocks_ready == 2);
}

TEST_CASE("storing the same prompt again stores nothing") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  const Stats before = store.stats();
  Reservation reservation = need(store.reserve(tokens));
  CHECK(reservation.missing().empty());
  CHECK(reservation.tokens() == 100);
  const Prefix prefix = need(std::move(reservation).publish());
  CHECK(prefix.tokens() == 100);
  CHECK(wrong(prefix, store.geometry(), tokens) == "");
  CHECK(store.stats().blocks_ready == before.blocks_ready);
  CHECK(store.stats().counters.published_blocks == before.counters.published_blocks);
}

TEST_CASE("a path longer than a segment spans several and is found whole") {
  const TempDir dir;
  const TokenList tokens = prompt(4'000, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  CHECK(store.stats().segments > 1);
  CHECK(get(store, tokens) == 4'000);
  CHECK(get(need(Store::open(dir / "s")), tokens) == 4'000);
}

TEST_CASE("a handle sees segments that another one added after it was opened") {
  const TempDir dir;
  Store writer = make_store(dir / "s");
  const Store reader = need(Store::open(dir / "s"));
  put(writer, prompt(4'000, 1));
  CHECK(reader.match(prompt(4'000, 1)) == 4'000);
  CHECK(get(reader, prompt(4'000, 1)) == 4'000);
}

TEST_CASE("the name of a path is the same in every handle, and finds it") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  std::uint64_t path = 0;
  {
    Store store = make_store(dir / "s");
    put(store, tokens);
    path = store.lookup(tokens).path();
    CHECK(path != 0);
    CHECK(store.lookup(first(tokens, 96)).path() != path);
    CHECK(Prefix().path() == 0);
  }
  const Store store = need(Store::open(dir / "s"));
  CHECK(store.lookup(tokens).path() == path);
  const Prefix found = need(store.lookup_path(path));
  CHECK(found.tokens() == 100);
  CHECK(wrong(found, store.geometry(), tokens) == "");
  CHECK(store.lookup_path(path + 1).error().code == Errc::invalid);
}

TEST_CASE("lookups are counted with the tokens asked for and found") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(32, 1));
  const Counters before = store.stats().counters;
  CHECK(get(store, fork_at(prompt(32, 1), 32, prompt(10, 3))) == 32);
  CHECK(get(store, prompt(50, 2)) == 0);
  const Counters after = store.stats().counters;
  CHECK(after.lookups - before.lookups == 2);
  CHECK(after.lookup_tokens - before.lookup_tokens == 92);
  CHECK(after.hit_tokens - before.hit_tokens == 32);
  CHECK(after.misses - before.misses == 1);
  CHECK(after.degraded_misses == before.degraded_misses);
}
