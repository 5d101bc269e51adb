#include "catch.hpp"

#include <array>

#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// Stores the missing ones of `keys`; returns how many wanted rows.
std::size_t put_keys(Store& store, std::span<const Key> keys, Namespace name_space = {}) {
  Reservation reservation = need(store.reserve_keys(keys, name_space));
  const std::uint32_t block_tokens = store.geometry().block_tokens;
  const Content content(keys, block_tokens, name_space);
  std::size_t wanted = 0;
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    if (!reservation.missing_key(i)) continue;
    ++wanted;
    const TokenRange rows{i * block_tokens, (i + 1) * block_tokens};
    need(write_rows(reservation, store.geometry(), content, rows));
  }
  const Prefix prefix = need(std::move(reservation).publish());
  const std::string problem = wrong_rows(prefix, store.geometry(), content);
  if (!problem.empty()) throw std::runtime_error("publish_keys: " + problem);
  return wanted;
}

std::uint32_t get_keys(const Store& store, std::span<const Key> keys, Namespace name_space = {}) {
  const Prefix prefix = store.lookup_keys(keys, name_space);
  const Content content(keys, store.geometry().block_tokens, name_space);
  const std::string problem = wrong_rows(prefix, store.geometry(), content);
  if (!problem.empty()) throw std::runtime_error(problem);
  REQUIRE(prefix.tokens() == prefix.blocks() * store.geometry().block_tokens);
  return prefix.blocks();
}

}  // namespace

TEST_CASE("pages stored under an engine's own keys are found byte for byte") {
  const TempDir dir;
  const std::vector<Key> keys = {"one", "two", "three", "four"};
  {
    Store store = make_store(dir / "s");
    CHECK(get_keys(store, keys) == 0);
    CHECK(put_keys(store, keys) == 4);
    CHECK(get_keys(store, keys) == 4);
  }
  CHECK(get_keys(need(Store::open(dir / "s")), keys) == 4);
}

TEST_CASE("match_keys tells each key apart and the length of the leading run") {
  const TempDir dir;
  const std::vector<Key> stored = {"a", "b", "d"};
  const std::vector<Key> asked = {"a", "b", "c", "d"};
  Store store = make_store(dir / "s");
  put_keys(store, stored);
  std::array<bool, 4> found{};
  CHECK(store.match_keys(asked, found) == 2);
  CHECK(found == std::array<bool, 4>{true, true, false, true});
  CHECK(get_keys(store, asked) == 2);
}

TEST_CASE("only keys that are not stored want rows, and the others are shared") {
  const TempDir dir;
  const std::vector<Key> stored = {"b", "d"};
  const std::vector<Key> asked = {"a", "b", "c", "d", "e"};
  Store store = make_store(dir / "s");
  put_keys(store, stored);
  Reservation reservation = need(store.reserve_keys(asked));
  CHECK(reservation.missing_key(0));
  CHECK_FALSE(reservation.missing_key(1));
  CHECK(reservation.missing_key(2));
  CHECK_FALSE(reservation.missing_key(3));
  CHECK(reservation.missing_key(4));
  CHECK_FALSE(reservation.missing_key(5));
  reservation = {};
  CHECK(put_keys(store, asked) == 3);
  CHECK(get_keys(store, asked) == 5);
  CHECK(store.stats().blocks_ready == 5);
}

TEST_CASE("a key is any 1 to 64 bytes, compared whole") {
  const TempDir dir;
  const std::vector<std::string> texts = {"a", std::string("a\0", 2), std::string("\0", 1),
                                          std::string(63, 'k'), std::string(64, 'k')};
  const std::vector<Key> keys(texts.begin(), texts.end());
  Store store = make_store(dir / "s");
  for (std::size_t i = 0; i < keys.size(); ++i) {
    CHECK(put_keys(store, std::span(keys).subspan(i, 1)) == 1);
    CHECK(get_keys(store, keys) == i + 1);
  }
  const std::string longer(65, 'k');
  for (const Key bad : {Key(longer), Key("")}) {
    CHECK(store.reserve_keys(std::span(&bad, 1)).error().code == Errc::invalid);
    CHECK(store.lookup_keys(std::span(&bad, 1)).empty());
  }
}

TEST_CASE("keys and token paths never match each other") {
  const TempDir dir;
  const TokenList tokens = prompt(16, 1);
  const Key same_bytes(reinterpret_cast<const char*>(tokens.data()), 64);
  Store store = make_store(dir / "s");
  put(store, tokens);
  CHECK(get_keys(store, std::span(&same_bytes, 1)) == 0);
  CHECK(put_keys(store, std::span(&same_bytes, 1)) == 1);
  CHECK(get(store, tokens) == 16);
  CHECK(get_keys(store, std::span(&same_bytes, 1)) == 1);
}

TEST_CASE("keys of different namespaces never see each other") {
  const TempDir dir;
  const std::vector<Key> keys = {"one", "two"};
  Store store = make_store(dir / "s");
  put_keys(store, keys, "alice");
  CHECK(get_keys(store, keys) == 0);
  CHECK(get_keys(store, keys, "bob") == 0);
  CHECK(put_keys(store, keys, "bob") == 2);
  CHECK(get_keys(store, keys, "alice") == 2);
}

TEST_CASE("the tokens of a run of keys are not known and that is said") {
  const TempDir dir;
  const std::vector<Key> keys = {"one"};
  Store store = make_store(dir / "s");
  put_keys(store, keys);
  CHECK(store.lookup_keys(keys).token_ids().error().code == Errc::invalid);
}

TEST_CASE("paths list key blocks as such, and remove forgets them") {
  const TempDir dir;
  const std::vector<Key> keys = {"one", "two"};
  Store store = make_store(dir / "s");
  put_keys(store, keys);
  const std::vector<PathInfo> paths = need(store.paths());
  REQUIRE(paths.size() == 2);
  CHECK((paths[0].key && paths[1].key));
  need(store.remove(std::array{paths[0].path, paths[1].path}));
  CHECK(get_keys(store, keys) == 0);
}

TEST_CASE(
    "in a cache with little room the keys that found some are stored, each with its own rows") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(), small_options(1 * mib));
  const std::uint64_t room = need(store.info()).segment_blocks * need(store.info()).max_segments;
  std::vector<Prefix> held;
  for (std::uint64_t used = 0; used + 14 < room; used += 10) {
    held.push_back(need(try_put_pinned(store, prompt(160, used))));
  }
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("key " + std::to_string(i));
  const std::vector<Key> keys(names.begin(), names.end());
  const std::vector<Key> standing = {keys[1], keys[3]};
  put_keys(store, standing);
  const std::vector<Prefix> pinned = [&] {
    std::vector<Prefix> all;
    for (const Key& key : standing) all.push_back(store.lookup_keys(std::span(&key, 1)));
    return all;
  }();
  CHECK(put_keys(store, keys) < 38);
  std::uint32_t stored = 0;
  for (const Key& key : keys) stored += get_keys(store, std::span(&key, 1));
  CHECK(stored >= 2);
  CHECK(stored < 40);
  CHECK(get_keys(store, keys) <= stored);
}
