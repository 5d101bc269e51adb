#include "catch.hpp"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "support/disk.hpp"
#include "support/process.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

namespace {

struct stat status_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

void check_modes(const std::string& path, unsigned directories, unsigned files) {
  CHECK((status_of(path).st_mode & 07777U) == directories);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    CAPTURE(entry.path().string());
    const unsigned mode = status_of(entry.path()).st_mode & 07777U;
    CHECK(mode == (entry.is_directory() ? directories : files));
  }
}

/// As user and group, opens (or creates) a store and stores and reads a prompt.
/// Arguments: store, user id, group id, seed. Says "ok N" or the error.
int use_as(const Arguments& arguments) {
  const auto user = static_cast<uid_t>(std::stoul(arguments[1]));
  const auto group = static_cast<gid_t>(std::stoul(arguments[2]));
  if (::setgroups(0, nullptr) != 0 || ::setgid(group) != 0 || ::setuid(user) != 0) return 71;
  ::umask(0077);
  Options options = small_options();
  options.sharing = Sharing::group;
  Result<Store> store =
      Store::open_or_create(arguments[0], small_geometry(), small_model(), options);
  if (!store) {
    say(std::string(name(store.error().code)) + ": " + store.error().message);
    return 1;
  }
  const std::uint64_t seed = std::stoul(arguments[3]);
  put(*store, prompt(2'000, seed));
  std::uint32_t sum = 0;
  for (std::uint64_t each = 0; each <= seed; ++each) sum += get(*store, prompt(2'000, each));
  say("ok " + std::to_string(sum));
  return 0;
}

const RoleName use_as_role("use_as", &use_as);

}  // namespace

TEST_CASE("a store and all its files belong to its owner alone, whatever the umask") {
  const TempDir dir;
  const mode_t before = ::umask(GENERATE(0000U, 0022U, 0777U));
  Store store = make_store(dir / "s");
  put(store, prompt(3'000, 1));
  ::umask(before);
  CHECK(store.stats().segments > 1);
  check_modes(dir / "s", 0700, 0600);
}

TEST_CASE("a group store is open to its group, and says so in its facts") {
  const TempDir dir;
  const mode_t before = ::umask(GENERATE(0000U, 0077U));
  Options options = small_options();
  options.sharing = Sharing::group;
  {
    Store store = make_store(dir / "s", small_geometry(), options);
    put(store, prompt(3'000, 1));
  }
  check_modes(dir / "s", 02770, 0660);
  const Store store = need(Store::open(dir / "s"));
  ::umask(before);
  CHECK(need(store.info()).sharing == Sharing::group);
}

TEST_CASE("a store that others may write is refused, and its mode is named") {
  const TempDir dir;
  { const Store store = make_store(dir / "s"); }
  const unsigned mode = GENERATE(0770U, 0707U, 0777U, 0720U);
  ::chmod((dir / "s").c_str(), mode);
  const Result<Store> store = Store::open(dir / "s");
  REQUIRE_FALSE(store);
  CHECK_THAT(store.error().message, contains(dir / "s") && contains("0700"));
}

TEST_CASE("a group store that everybody may write is refused") {
  const TempDir dir;
  Options options = small_options();
  options.sharing = Sharing::group;
  { const Store store = make_store(dir / "s", small_geometry(), options); }
  ::chmod((dir / "s").c_str(), 02777);
  const Result<Store> store = Store::open(dir / "s");
  REQUIRE_FALSE(store);
  CHECK_THAT(store.error().message, contains("2770"));
}

TEST_CASE("workers under several user ids share a group store") {
  if (!may_change_user()) return;
  const TempDir dir;
  ::chmod(dir.path().c_str(), 0777);
  const std::string path = dir / "s";
  Child creator("use_as", {path, "12001", "12345", "0"});
  CHECK(creator.hear() == "ok 2000");
  CHECK(creator.finish() == 0);
  Child other("use_as", {path, "12002", "12345", "1"});
  CHECK(other.hear() == "ok 4000");
  Child again("use_as", {path, "12001", "12345", "2"});
  CHECK(again.hear() == "ok 6000");
  check_modes(path, 02770, 0660);
}

TEST_CASE("a store of somebody else is refused with words") {
  if (!may_change_user()) return;
  const TempDir dir;
  ::chmod(dir.path().c_str(), 0777);
  const std::string path = dir / "s";
  { const Store store = make_store(path); }
  Child stranger("use_as", {path, "12002", "12345", "0"});
  CHECK_THAT(stranger.hear(), contains(path));
  CHECK(stranger.finish() == 1);
}

TEST_CASE("a directory that belongs to somebody else and can be read by all is refused") {
  if (!may_change_user()) return;
  const TempDir dir;
  ::chmod(dir.path().c_str(), 0777);
  const std::string path = dir / "s";
  { const Store store = make_store(path); }
  ::chmod(path.c_str(), 0755);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    ::chmod(entry.path().c_str(), entry.is_directory() ? 0755 : 0666);
  }
  Child stranger("use_as", {path, "12002", "12345", "0"});
  CHECK_THAT(stranger.hear(), contains(path));
  CHECK(stranger.finish() == 1);
}

TEST_CASE("files that root makes in a user's store belong to that user") {
  if (!may_change_user()) return;
  const TempDir dir;
  const std::string path = dir / "s";
  {
    Store store = make_store(path);
    put(store, prompt(100, 1));
  }
  REQUIRE(std::system(("chown -R 12001:12345 '" + path + "'").c_str()) == 0);
  fs::remove(path + "/control");
  Store store = need(Store::open(path));
  put(store, prompt(3'000, 2));
  CHECK(store.stats().segments > 1);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    CAPTURE(entry.path().string());
    CHECK(status_of(entry.path()).st_uid == 12001);
    CHECK(status_of(entry.path()).st_gid == 12345);
  }
  check_modes(path, 0700, 0600);
}

TEST_CASE("backup programs are told that a store is a cache") {
  const TempDir dir;
  const Store store = make_store(dir / "s");
  const std::vector<std::byte> tag = read_file(dir / "s/CACHEDIR.TAG");
  const std::string text(reinterpret_cast<const char*>(tag.data()), tag.size());
  CHECK(text.rfind("Signature: 8a477f597d28d172789f06886806bc55", 0) == 0);
}

TEST_CASE("an inspecting handle takes no seat, pins nothing, writes nothing and reads everything") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  Options options;
  options.access = Access::inspect;
  Store inspector = need(Store::open(dir / "s", options));
  CHECK(store.stats().seats_taken == 1);
  CHECK(inspector.match(tokens) == 100);
  const Prefix prefix = inspector.lookup(tokens);
  CHECK(wrong(prefix, inspector.geometry(), tokens) == "");
  CHECK(store.stats().blocks_pinned == 0);
  CHECK(need(inspector.paths()).size() == 1);
  CHECK(need(inspector.verify()).damage.empty());
  CHECK_FALSE(inspector.reserve(prompt(20, 2)).has_value());
  CHECK_FALSE(inspector.evict(0).has_value());
  CHECK_FALSE(inspector.remove(std::array{prefix.path()}).has_value());
  CHECK(get(store, tokens) == 100);
}

TEST_CASE("a reading handle looks up and pins, and stores and evicts nothing") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  Options options;
  options.access = Access::read;
  Store reader = need(Store::open(dir / "s", options));
  const Prefix prefix = reader.lookup(tokens);
  CHECK(wrong(prefix, reader.geometry(), tokens) == "");
  CHECK(store.stats().blocks_pinned == 7);
  CHECK_FALSE(reader.reserve(prompt(20, 2)).has_value());
  CHECK_FALSE(reader.evict(0).has_value());
}

TEST_CASE("a store on a read-only mount is read by tools, and refused by engines with words") {
  if (!may_mount()) return;
  const TokenList tokens = prompt(100, 1);
  const SmallDisk disk(8 * mib);
  const std::string path = disk / "s";
  {
    Store store = make_store(path, small_geometry(), small_options(4 * mib));
    put(store, tokens);
  }
  disk.make_read_only();
  const Access access = GENERATE(Access::read, Access::write);
  Options options;
  options.access = access;
  const Result<Store> refused = Store::open(path, options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::io);
  CHECK_THAT(refused.error().message, contains(path));
  options.access = Access::inspect;
  const Store store = need(Store::open(path, options));
  CHECK(store.match(tokens) == 100);
  CHECK(wrong(store.lookup(tokens), store.geometry(), tokens) == "");
  CHECK(need(store.verify()).blocks == 7);
  CHECK(need(inspect(path)).geometry == small_geometry());
}

TEST_CASE("a damaged block is not served to an inspecting handle either") {
  const TempDir dir;
  const TokenList tokens = prompt(100, 1);
  Store store = make_store(dir / "s");
  put(store, tokens);
  const DiskBlock block = find_block(dir / "s", tokens, 32);
  flip_byte(block.file, row_offset(block, 16, 0, Plane::key, 5));
  Options options;
  options.access = Access::inspect;
  const Store inspector = need(Store::open(dir / "s", options));
  const Prefix prefix = inspector.lookup(tokens);
  std::vector<std::byte> out(prefix.tokens() * 34);
  const Result<void> copied = prefix.copy(0, Plane::key, {0, prefix.tokens()}, std::span(out));
  CHECK((prefix.tokens() == 32 || !copied));
}

TEST_CASE("a handle that cannot pin copies, and gives no view that could change under the reader") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(50, 1);
  put(store, tokens);
  Options options;
  options.access = Access::inspect;
  const Store inspector = need(Store::open(dir / "s", options));
  const Prefix prefix = inspector.lookup(tokens);
  REQUIRE(prefix.tokens() == 50);
  const auto view = prefix.view(0, Plane::key);
  REQUIRE_FALSE(view);
  CHECK(view.error().code == Errc::invalid);
  need(store.evict(0));
  put(store, prompt(50, 2));
  std::vector<std::byte> out(std::size_t{50} * inspector.geometry().row_bytes(0, Plane::key));
  CHECK_FALSE(prefix.copy(0, Plane::key, {}, std::span(out)));
}
