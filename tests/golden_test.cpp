#include "catch.hpp"

#include <array>
#include <cstdlib>

#include "support/process.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

/// Stores written by earlier versions, kept for ever: what they hold must always be read.
/// tests/golden/store/README says how they were made.

namespace {

const std::vector<Key> golden_keys = {"page-1", std::string_view("page\0two", 8)};
const std::string golden_namespace("tenant\0one", 10);

Geometry golden_geometry() { return small_geometry(8); }

Options golden_options() {
  Options options = small_options(1 * mib);
  options.segment_bytes = 16 * kib;
  return options;
}

/// Makes the store that is kept. Argument: where.
int make_golden(const Arguments& arguments) {
  Store store = make_store(arguments[0], golden_geometry(), golden_options());
  put(store, prompt(61, 1));
  put(store, fork_at(prompt(61, 1), 29, prompt(20, 2)));
  put(store, first(prompt(30, 3), 13));
  put(store, prompt(30, 3));
  put(store, prompt(16, 1), golden_namespace);
  put(store, prompt(30, 4));
  need(store.remove(std::array{path_of(store, prompt(30, 4))}));
  Reservation reservation = need(store.reserve_keys(golden_keys));
  const Content content(golden_keys, 8);
  need(write_rows(reservation, store.geometry(), content, {0, 16}));
  need(std::move(reservation).publish());
  return 0;
}

const RoleName golden_role("make_golden", &make_golden);

void check_golden(Store& store) {
  CHECK(store.geometry() == golden_geometry());
  CHECK(store.model() == small_model());
  CHECK(get(store, prompt(61, 1)) == 61);
  CHECK(get(store, fork_at(prompt(61, 1), 29, prompt(20, 2))) == 49);
  CHECK(get(store, prompt(30, 3)) == 30);
  CHECK(get(store, prompt(16, 1), golden_namespace) == 16);
  CHECK(get(store, prompt(30, 4)) == 0);
  const Prefix keys = store.lookup_keys(golden_keys);
  CHECK(keys.blocks() == 2);
  CHECK(wrong_rows(keys, store.geometry(), Content(golden_keys, 8)) == "");
  CHECK(need(store.verify()).damage.empty());
}

}  // namespace

TEST_CASE("a store written by version 0.1 is read, and written on") {
  const TempDir dir;
  const std::string archive = std::string(ESKER_TEST_DATA_DIR) + "/store/store-0.1.tar.xz";
  const std::string command =
      "tar --no-same-owner -xpJf '" + archive + "' -C '" + dir.path().string() + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  Store store = need(Store::open(dir / "store-0.1", golden_geometry(), small_model()));
  check_golden(store);
  CHECK(need(inspect(dir / "store-0.1")).write_version == 1);
  put(store, prompt(150, 9));
  CHECK(get(store, prompt(150, 9)) == 150);
  check_golden(store);
}

TEST_CASE("the store that would be kept for later versions holds what it should") {
  const TempDir dir;
  CHECK(run_child("make_golden", {dir / "g"}) == 0);
  Store store = need(Store::open(dir / "g"));
  check_golden(store);
}
