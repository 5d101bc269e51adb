#include "catch.hpp"

#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

TEST_CASE("namespaces never see each other, however alike their names are") {
  const TempDir dir;
  const TokenList tokens = prompt(70, 1);
  Store store = make_store(dir / "s");
  const std::vector<std::string> names = {"",
                                          std::string(1, '\0'),
                                          std::string(2, '\0'),
                                          "a",
                                          "b",
                                          std::string("a\0", 2),
                                          std::string("\0a", 2),
                                          std::string("a\0b", 3),
                                          "aa",
                                          "tenant",
                                          "tenan",
                                          "tenant1",
                                          std::string(63, 'x'),
                                          std::string(64, 'x')};
  for (std::size_t i = 0; i < names.size(); ++i) {
    put(store, tokens, names[i]);
    for (std::size_t j = 0; j < names.size(); ++j) {
      CAPTURE(i, j);
      CHECK(store.match(tokens, names[j]) == (j <= i ? 70 : 0));
      CHECK(get(store, tokens, names[j]) == (j <= i ? 70 : 0));
    }
  }
  CHECK(store.stats().blocks_ready == 5 * names.size());
}

TEST_CASE("namespaces are kept apart after the store was opened anew") {
  const TempDir dir;
  const TokenList tokens = prompt(70, 1);
  {
    Store store = make_store(dir / "s");
    put(store, tokens, "alice");
  }
  const Store store = need(Store::open(dir / "s"));
  CHECK(get(store, tokens, "alice") == 70);
  CHECK(get(store, tokens) == 0);
  CHECK(get(store, tokens, "bob") == 0);
}

TEST_CASE("the names of equal prompts in two namespaces differ") {
  const TempDir dir;
  const TokenList tokens = prompt(70, 1);
  Store store = make_store(dir / "s");
  put(store, tokens, "alice");
  put(store, tokens, "bob");
  CHECK(store.lookup(tokens, "alice").path() != store.lookup(tokens, "bob").path());
}

TEST_CASE("a namespace of 65 bytes is refused by name, and a lookup in it is a miss") {
  const TempDir dir;
  const TokenList tokens = prompt(70, 1);
  const std::string longest(64, 'x');
  const std::string longer(65, 'x');
  Store store = make_store(dir / "s");
  put(store, tokens, longest);
  CHECK(store.match(tokens, longer) == 0);
  CHECK(store.lookup(tokens, longer).empty());
  const Result<Reservation> reservation = store.reserve(tokens, longer);
  REQUIRE_FALSE(reservation);
  CHECK(reservation.error().code == Errc::invalid);
  CHECK_THAT(reservation.error().message,
             contains("namespace") && contains("65") && contains("64"));
}

TEST_CASE("paths tell their namespace as it is") {
  const TempDir dir;
  const std::string name("a\0b\xff", 4);
  Store store = make_store(dir / "s");
  put(store, prompt(20, 1), name);
  const std::vector<PathInfo> paths = need(store.paths());
  REQUIRE(paths.size() == 1);
  CHECK(paths[0].name_space == name);
}
