#include "catch.hpp"

#include <filesystem>

#include "support/disk.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

TEST_CASE("a store is opened with exactly what it was created with") {
  const TempDir dir(GENERATE(Place::memory, Place::disk));
  const std::string path = dir / "s";
  { const Store created = make_store(path); }
  const Store opened = need(Store::open(path));
  CHECK(opened.geometry() == small_geometry());
  CHECK(opened.model() == small_model());
  const Info info = need(opened.info());
  CHECK(info.geometry == small_geometry());
  CHECK(info.model == small_model());
  CHECK(info.capacity_bytes == 8 * mib);
  CHECK(info.seats == 16);
  CHECK(info.sharing == Sharing::owner);
  CHECK(info.created_unix_ns > 0);
  CHECK(info.segments_bytes < info.capacity_bytes);
  CHECK(info.segment_blocks >= 2);
  CHECK(info.write_version == format_write_version);
  CHECK(info.read_version <= format_read_version);
}

TEST_CASE("inspect reads the facts of a store without opening it") {
  const TempDir dir;
  const std::string path = dir / "s";
  Store store = make_store(path);
  put(store, prompt(40, 1));
  const Info info = need(inspect(path));
  CHECK(info.uuid == need(store.info()).uuid);
  CHECK(info.geometry == small_geometry());
  CHECK(info.segments == 1);
  CHECK(info.disk_bytes > 0);
  CHECK(store.stats().seats_taken == 1);
  CHECK(inspect(dir / "nothing").error().code == Errc::missing);
}

TEST_CASE("two stores never have the same uuid") {
  const TempDir dir;
  const Store one = make_store(dir / "one");
  const Store two = make_store(dir / "two");
  CHECK(need(one.info()).uuid != need(two.info()).uuid);
}

TEST_CASE("creating a store where one is already is refused and leaves it alone") {
  const TempDir dir;
  const std::string path = dir / "s";
  {
    Store store = make_store(path);
    put(store, prompt(40, 1));
  }
  const Result<Store> again = Store::create(path, small_geometry(), small_model(), small_options());
  REQUIRE_FALSE(again);
  CHECK(again.error().code == Errc::invalid);
  CHECK_THAT(again.error().message, contains(path));
  CHECK(get(need(Store::open(path)), prompt(40, 1)) == 40);
}

TEST_CASE("creating a store over a directory with other files is refused and leaves them alone") {
  const TempDir dir;
  const std::string path = dir / "photos";
  fs::create_directory(path);
  const std::byte content[] = {std::byte{1}};
  write_file(path + "/cat.jpg", content);
  CHECK_FALSE(Store::create(path, small_geometry(), small_model(), small_options()));
  CHECK(read_file(path + "/cat.jpg").size() == 1);
  CHECK(std::distance(fs::directory_iterator(path), fs::directory_iterator()) == 1);
}

TEST_CASE("opening what is not there is missing") {
  const TempDir dir;
  const Result<Store> store = Store::open(dir / "nothing");
  REQUIRE_FALSE(store);
  CHECK(store.error().code == Errc::missing);
  CHECK_THAT(store.error().message, contains(dir / "nothing"));
  CHECK_FALSE(fs::exists(dir / "nothing"));
}

TEST_CASE("open_or_create creates a store once and opens it afterwards") {
  const TempDir dir;
  const std::string path = dir / "s";
  const auto again = [&] {
    return need(Store::open_or_create(path, small_geometry(), small_model(), small_options()));
  };
  {
    Store store = again();
    put(store, prompt(100, 1));
  }
  CHECK(get(again(), prompt(100, 1)) == 100);
}

TEST_CASE("another model id is refused and the differing keys are named, no others") {
  const TempDir dir;
  const std::string path = dir / "s";
  { const Store store = make_store(path); }
  const ModelId other = need(ModelId::parse("weights=ffff\nrope=10000\nrank=0/1\nlora=x\n"));
  for (const Result<Store>& store :
       {Store::open(path, small_geometry(), other),
        Store::open_or_create(path, small_geometry(), other, small_options())}) {
    REQUIRE_FALSE(store);
    CHECK(store.error().code == Errc::incompatible);
    CHECK_THAT(store.error().message, contains("weights") && contains("lora"));
    CHECK_THAT(store.error().message, !contains("rope") && !contains("rank"));
  }
}

TEST_CASE("another geometry is refused and the difference is named") {
  const TempDir dir;
  const std::string path = dir / "s";
  { const Store store = make_store(path); }
  const auto message = [&](const Geometry& geometry) {
    const Result<Store> store = Store::open(path, geometry, small_model());
    REQUIRE_FALSE(store);
    CHECK(store.error().code == Errc::incompatible);
    return store.error().message;
  };
  CHECK_THAT(message(small_geometry(32)), contains("16") && contains("32"));
  Geometry dtype = small_geometry();
  dtype.dtype = "bf16";
  CHECK_THAT(message(dtype), contains("f16") && contains("bf16"));
  Geometry rows = small_geometry();
  rows.layers[2].value_row_bytes = 999;
  CHECK_THAT(message(rows), contains("999") && contains("57"));
  Geometry fewer = small_geometry();
  fewer.layers.pop_back();
  CHECK_THAT(message(fewer), contains("layers"));
}

TEST_CASE("geometries that cannot be are refused by name") {
  const TempDir dir;
  const auto message = [&](const Geometry& geometry) {
    const Result<Store> store = Store::create(dir / "s", geometry, small_model(), small_options());
    REQUIRE_FALSE(store);
    CHECK(store.error().code == Errc::invalid);
    CHECK_FALSE(fs::exists(dir / "s"));
    return store.error().message;
  };
  Geometry geometry = small_geometry(0);
  CHECK_THAT(message(geometry), contains("block_tokens") && contains("1024"));
  geometry.block_tokens = 1025;
  CHECK_THAT(message(geometry), contains("block_tokens") && contains("1025"));
  geometry = small_geometry();
  geometry.layers[1] = {0, 0};
  CHECK_THAT(message(geometry), contains("layer 1") || contains("layers[1]"));
  geometry.layers.clear();
  CHECK_THAT(message(geometry), contains("layers"));
  geometry.layers.assign(Geometry::max_layers + 1, {8, 8});
  CHECK_THAT(message(geometry), contains("2048"));
  geometry = small_geometry();
  geometry.dtype = std::string(32, 'x');
  CHECK_THAT(message(geometry), contains("dtype"));
}

TEST_CASE("a capacity that holds no store is refused with the number that would") {
  const TempDir dir;
  Options options = small_options(64 * kib);
  const Result<Store> store = Store::create(dir / "s", small_geometry(), small_model(), options);
  REQUIRE_FALSE(store);
  CHECK(store.error().code == Errc::invalid);
  CHECK_THAT(store.error().message, contains("capacity"));
  CHECK_FALSE(fs::exists(dir / "s"));
}

TEST_CASE("a store can be as small as two blocks") {
  const TempDir dir;
  Options options = small_options(512 * kib);
  options.segment_bytes = 16 * kib;
  Store store = make_store(dir / "s", small_geometry(), options);
  put(store, prompt(30, 1));
  CHECK(get(store, prompt(30, 1)) == 30);
}

TEST_CASE("destroy refuses while anyone has the store open, and removes all of it afterwards") {
  const TempDir dir;
  const std::string path = dir / "s";
  {
    Store store = make_store(path);
    put(store, prompt(40, 1));
    const Result<void> refused = Store::destroy(path);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::busy);
    CHECK(get(store, prompt(40, 1)) == 40);
  }
  need(Store::destroy(path));
  CHECK_FALSE(fs::exists(path));
  CHECK(Store::destroy(path).error().code == Errc::missing);
}

TEST_CASE("destroy refuses while a prefix of a closed handle lives") {
  const TempDir dir;
  const std::string path = dir / "s";
  Prefix prefix;
  {
    Store store = make_store(path);
    put(store, prompt(40, 1));
    prefix = store.lookup(prompt(40, 1));
  }
  CHECK(Store::destroy(path).error().code == Errc::busy);
  prefix = {};
  need(Store::destroy(path));
}

TEST_CASE("destroy never removes a file that it does not know") {
  const TempDir dir;
  const std::string path = dir / "s";
  { const Store store = make_store(path); }
  const std::byte content[] = {std::byte{1}};
  write_file(path + "/thesis.txt", content);
  const Result<void> result = Store::destroy(path);
  REQUIRE_FALSE(result);
  CHECK_THAT(result.error().message, contains("thesis.txt"));
  CHECK(read_file(path + "/thesis.txt").size() == 1);
}

TEST_CASE("destroy of a directory that is no store touches nothing") {
  const TempDir dir;
  const std::byte content[] = {std::byte{1}};
  fs::create_directory(dir / "d");
  write_file(dir / "d/segments", content);
  write_file(dir / "d/lock", content);
  CHECK_FALSE(Store::destroy(dir / "d"));
  CHECK(fs::exists(dir / "d/segments"));
  CHECK(fs::exists(dir / "d/lock"));
}

TEST_CASE("files of a store never exceed its capacity together") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(), small_options(2 * mib));
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    put(store, prompt(200, seed));
    REQUIRE(sum_of_sizes(dir / "s") <= 2 * mib);
  }
  CHECK(store.stats().counters.evicted_blocks > 0);
  CHECK(store.stats().file_bytes <= 2 * mib);
}

TEST_CASE("a store that was moved from answers with misses and errors, never with a crash") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(50, 1));
  const Store moved = std::move(store);
  CHECK(store.match(prompt(50, 1)) == 0);
  CHECK(store.lookup(prompt(50, 1)).empty());
  CHECK(store.reserve(prompt(50, 1)).error().code == Errc::invalid);
  CHECK(store.paths().error().code == Errc::invalid);
  CHECK(store.stats().blocks_total == 0);
  CHECK(store.geometry().layers.empty());
  CHECK(store.events().empty());
  CHECK(store.processes().empty());
  CHECK(get(moved, prompt(50, 1)) == 50);
}

TEST_CASE("options outside of their names are refused when a store is opened") {
  const TempDir dir;
  const Store store = make_store(dir / "s");
  Options options;
  options.verify = static_cast<Verify>(77);
  CHECK(Store::open(dir / "s", options).error().code == Errc::invalid);
  options = {};
  options.access = static_cast<Access>(9);
  CHECK(Store::open(dir / "s", options).error().code == Errc::invalid);
}

TEST_CASE("what a killed creation or destruction left can be destroyed") {
  const TempDir dir;
  { const Store store = make_store(dir / "s"); }
  std::filesystem::remove(dir / "s/esker");
  CHECK(Store::open(dir / "s").error().code == Errc::missing);
  CHECK(Store::destroy(dir / "s").has_value());
  CHECK_FALSE(std::filesystem::exists(dir / "s"));
  std::filesystem::create_directory(dir / "other");
  CHECK(Store::destroy(dir / "other").error().code == Errc::missing);
  CHECK(std::filesystem::exists(dir / "other"));
}
