#include "catch.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <esker/kv_cache.hpp>
#include <filesystem>
#include <optional>

#include "support/disk.hpp"
#include "support/in_fork.hpp"
#include "support/process.hpp"
#include "support/sequence.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t room = 300;

CacheFileOptions reading() {
  CacheFileOptions options;
  options.access = CacheAccess::read;
  return options;
}

KvCache make(const std::string& path, std::uint32_t max_tokens = room) {
  return need(KvCache::create(path, cache_geometry(), max_tokens));
}

std::size_t files_in(const fs::path& directory) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

/// Opens for writing and waits for its parent. Argument: path.
int hold_cache(const Arguments& arguments) {
  const KvCache cache = need(KvCache::open(arguments[0]));
  say("open");
  listen();
  return 0;
}
const RoleName hold_cache_role("hold_cache", &hold_cache);

/// Forks a child that lives on with whatever it inherits, and waits. Argument: path.
int fork_with_cache(const Arguments& arguments) {
  const KvCache cache = need(KvCache::open(arguments[0]));
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  say(std::to_string(child));
  listen();
  return 0;
}
const RoleName fork_with_cache_role("fork_with_cache", &fork_with_cache);

/// Loses all descriptors as a daemon does, and writes on. Argument: path.
int cache_without_descriptors(const Arguments& arguments) {
  KvCache cache = need(KvCache::open(arguments[0]));
  Sequence sequence = sequence_of(cache);
  for (int file = 3; file < 4'096; ++file) ::close(file);
  need(append(cache, sequence, 20, 5));
  need(cache.sync());
  say("synced");
  listen();
  return 0;
}
const RoleName without_descriptors_role("cache_without_descriptors", &cache_without_descriptors);

}  // namespace

TEST_CASE("a cache file holds its tokens when it is opened again, with or without sync",
          "[cache]") {
  const TempDir dir(GENERATE(Place::memory, Place::disk));
  const bool synced = GENERATE(false, true);
  Sequence sequence;
  {
    KvCache cache = make(dir / "c");
    need(append(cache, sequence, 100, 1));
    if (synced) need(cache.sync());
    need(append(cache, sequence, 50, 2));
    // Stored, but not advanced over: of this handle only.
    need(cache.store(0, std::vector<std::byte>(34), std::vector<std::byte>(40)));
  }
  for (int i = 0; i < 3; ++i) {
    KvCache cache = need(KvCache::open(dir / "c"));
    CHECK(cache.max_tokens() == room);
    CHECK(cache.geometry() == cache_geometry());
    CHECK(cache.keys(0).size() == std::size_t{cache.length()} * 34);
    REQUIRE(sequence_of(cache).states() == sequence.states());
    need(append(cache, sequence, 7, 3));
    if (synced) need(cache.sync());
    need(cache.truncate(cache.length() - 3));
    sequence.truncate(sequence.tokens() - 3);
  }
}

TEST_CASE("an open cache shows a reader what is committed and nothing else", "[cache]") {
  const TempDir dir;
  Sequence sequence;
  KvCache writer = make(dir / "c");
  KvCache reader = need(KvCache::open(dir / "c", reading()));
  CHECK(reader.empty());
  need(append(writer, sequence, 40, 1));
  CHECK(sequence_of(reader).states() == sequence.states());
  need(writer.store(0, std::vector<std::byte>(34), std::vector<std::byte>(40)));
  CHECK(reader.keys(0).size() == 40 * 34);
  need(writer.truncate(10));
  sequence.truncate(10);
  CHECK(reader.length() == 10);
  need(append(writer, sequence, 30, 9));
  CHECK(sequence_of(reader).states() == sequence.states());
  CHECK(need(reader.snapshot()).tokens() == 40);
  const Runs runs = need(reader.view(2, Plane::value));
  CHECK(runs.begin()->tokens == TokenRange{0, 40});
  need(writer.clear());
  CHECK(reader.empty());
}

TEST_CASE("a handle that reads can change nothing and says so", "[cache]") {
  const TempDir dir;
  Sequence sequence;
  { need(append(*std::make_unique<KvCache>(make(dir / "c")), sequence, 5, 1)); }
  const auto before = read_file(dir / "c");
  {
    KvCache reader = need(KvCache::open(dir / "c", reading()));
    const std::vector<std::byte> key(34);
    const std::vector<std::byte> value(40);
    for (const Result<void>& done :
         {reader.store(0, key, value), reader.store_rows(0, 1, key, value), reader.advance(),
          reader.truncate(0), reader.clear(), reader.sync(), reader.load(Prefix()),
          reader.restore(need(reader.snapshot()))}) {
      REQUIRE_FALSE(done);
      CHECK(done.error().code == Errc::invalid);
      CHECK_THAT(done.error().message, contains("access is read, expected write"));
    }
    CHECK(reader.rollback(reader.mark()).error().code == Errc::invalid);
    CHECK(sequence_of(reader).states() == sequence.states());
  }
  CHECK(read_file(dir / "c") == before);
  CHECK(KvCache::create(dir / "d", cache_geometry(), 10, reading()).error().code == Errc::invalid);
  CHECK(KvCache::open_or_create(dir / "d", cache_geometry(), 10, reading()).error().code ==
        Errc::missing);
  CHECK_FALSE(fs::exists(dir / "d"));
}

TEST_CASE("a second writer is told who the first one is, also within a process", "[cache]") {
  const TempDir dir;
  { const KvCache made = make(dir / "c"); }
  {
    Child holder("hold_cache", {dir / "c"});
    holder.hear();
    const auto second = KvCache::open(dir / "c");
    REQUIRE_FALSE(second);
    CHECK(second.error().code == Errc::busy);
    CHECK_THAT(second.error().message, contains("process " + std::to_string(holder.pid()) + " ("));
    CHECK(KvCache::open_or_create(dir / "c", cache_geometry(), room).error().code == Errc::busy);
    CHECK(KvCache::open(dir / "c", reading()));
    holder.kill();
  }
  std::optional<KvCache> here = need(KvCache::open(dir / "c"));
  const auto second = KvCache::open(dir / "c");
  CHECK(second.error().code == Errc::busy);
  CHECK_THAT(second.error().message, contains(std::to_string(::getpid())));
  here.reset();
  CHECK(KvCache::open(dir / "c"));
}

TEST_CASE("what is missing or there already is told apart", "[cache]") {
  const TempDir dir;
  const Error no_file = KvCache::open(dir / "c").error();
  CHECK(no_file.code == Errc::missing);
  CHECK(no_file.message == dir / "c" + ": there is no such file; KvCache::create makes one");
  const Error no_directory = KvCache::open(dir / "none/c").error();
  CHECK(no_directory.code == Errc::missing);
  CHECK_THAT(no_directory.message, contains(dir / "none/c" + ": there is no directory"));
  { const KvCache made = make(dir / "c"); }
  const auto again = KvCache::create(dir / "c", cache_geometry(), room);
  CHECK(again.error().code == Errc::invalid);
  CHECK_THAT(again.error().message, contains(dir / "c"));
  for (const std::string& path : {std::string(), dir.path().string() + "/", std::string("..")}) {
    CHECK(KvCache::create(path, cache_geometry(), room).error().code == Errc::invalid);
    CHECK(KvCache::open(path).error().code == Errc::invalid);
  }
  CHECK(files_in(dir.path()) == 1);
}

TEST_CASE("open_or_create takes only what has the same shape and model", "[cache]") {
  const TempDir dir;
  CacheFileOptions options;
  options.model = small_model();
  Sequence sequence;
  {
    KvCache cache = need(KvCache::open_or_create(dir / "c", cache_geometry(), room, options));
    need(append(cache, sequence, 5, 1));
  }
  {
    const KvCache cache = need(KvCache::open_or_create(dir / "c", cache_geometry(), room));
    CHECK(sequence_of(cache).states() == sequence.states());
    CHECK(cache.model() == small_model());
  }
  const auto other_room = KvCache::open_or_create(dir / "c", cache_geometry(), room + 1);
  CHECK(other_room.error().code == Errc::incompatible);
  CHECK_THAT(other_room.error().message, contains("max_tokens: 300 and 301"));
  Geometry geometry = cache_geometry();
  geometry.layers[2].value_row_bytes = 58;
  CHECK_THAT(KvCache::open_or_create(dir / "c", geometry, room).error().message,
             contains("row bytes of layer 2"));
  geometry = cache_geometry();
  geometry.block_tokens = 64;
  CHECK(KvCache::open_or_create(dir / "c", geometry, room));
  need(options.model.set("rope", "20000"));
  for (const auto& opened :
       {KvCache::open(dir / "c", options).error(),
        KvCache::open_or_create(dir / "c", cache_geometry(), room, options).error()}) {
    CHECK(opened.code == Errc::incompatible);
    CHECK_THAT(opened.message, contains("rope: \"10000\" and \"20000\""));
  }
}

TEST_CASE("a cache file is 0600, and one that is not, or is no file, is refused", "[cache]") {
  const TempDir dir;
  const mode_t mask = ::umask(0);
  { const KvCache made = make(dir / "c"); }
  ::umask(mask);
  struct stat status {};
  REQUIRE(::stat((dir / "c").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  for (const mode_t mode : {0640, 0604, 0700, 04600}) {
    REQUIRE(::chmod((dir / "c").c_str(), mode) == 0);
    CHECK_THAT(KvCache::open(dir / "c").error().message, contains("expected 0600"));
    CHECK_FALSE(KvCache::open(dir / "c", reading()));
  }
  REQUIRE(::chmod((dir / "c").c_str(), 0600) == 0);
  fs::create_symlink("c", dir / "link");
  const auto link = KvCache::open(dir / "link");
  CHECK(link.error().code == Errc::invalid);
  CHECK_THAT(link.error().message, contains("symbolic link"));
  CHECK(KvCache::create(dir / "link", cache_geometry(), room).error().code == Errc::invalid);
  fs::create_directory(dir / "directory");
  CHECK_FALSE(KvCache::open(dir / "directory"));
  CHECK_FALSE(KvCache::open(dir / "directory", reading()));
  REQUIRE(::mkfifo((dir / "fifo").c_str(), 0600) == 0);
  CHECK_THAT(KvCache::open(dir / "fifo").error().message, contains("not a regular file"));
  CHECK_THAT(KvCache::open(dir / "fifo", reading()).error().message,
             contains("not a regular file"));
  CHECK(KvCache::open(dir / "c"));
}

TEST_CASE("a cache file of another user is refused", "[cache]") {
  if (!may_change_user()) return;
  const TempDir dir;
  { const KvCache made = make(dir / "c"); }
  REQUIRE(::chown((dir / "c").c_str(), 12'345, 12'345) == 0);
  CHECK_THAT(KvCache::open(dir / "c").error().message, contains("owner is user 12345"));
  CHECK_FALSE(KvCache::open(dir / "c", reading()));
}

TEST_CASE("a cache that finds no room on the disk says so and leaves nothing", "[cache]") {
  if (!may_mount()) return;
  const SmallDisk disk(2 * mib);
  const std::uint64_t free_before = disk.free_bytes();
  const auto made = KvCache::create(disk / "c", cache_geometry(), 100'000);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == Errc::io);
  CHECK_THAT(made.error().message, contains(disk / "c"));
  CHECK_THAT(made.error().message, contains("No space left"));
  CHECK(files_in(disk.path()) == 0);
  CHECK(disk.free_bytes() == free_before);
  // One that fits works to its last row, though others fill the rest of the disk.
  Sequence sequence;
  KvCache cache = make(disk / "c", 2'000);
  write_file(disk / "filler", std::vector<std::byte>(disk.free_bytes()));
  need(append(cache, sequence, 2'000, 1));
  need(cache.sync());
  CHECK(sequence_of(cache).states() == sequence.states());
}

TEST_CASE("a copy with holes gets its room back, or is refused when there is none", "[cache]") {
  if (!may_mount()) return;
  const SmallDisk disk(3 * mib);
  const TempDir dir;
  Sequence sequence;
  {
    KvCache cache = make(dir / "c", 5'000);
    need(append(cache, sequence, 50, 1));
  }
  const auto whole = read_file(dir / "c");
  {
    const int fd = ::open((disk / "c").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    REQUIRE(::ftruncate(fd, static_cast<off_t>(whole.size())) == 0);
    for (std::size_t at = 0; at < whole.size(); at += 4096) {
      const auto page = std::span(whole).subspan(at, 4096);
      if (std::all_of(page.begin(), page.end(), [](auto b) { return b == std::byte{0}; })) continue;
      REQUIRE(::pwrite(fd, page.data(), page.size(), static_cast<off_t>(at)) == 4096);
    }
    ::close(fd);
  }
  {
    KvCache cache = need(KvCache::open(disk / "c"));
    CHECK(sequence_of(cache).states() == sequence.states());
    write_file(disk / "filler", std::vector<std::byte>(disk.free_bytes()));
    need(append(cache, sequence, 4'950, 2));
    CHECK(sequence_of(cache).states() == sequence.states());
  }
  fs::remove(disk / "c");
  write_file(disk / "filler", std::vector<std::byte>(2 * mib + 512 * kib));
  const int fd = ::open((disk / "c").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  REQUIRE(::ftruncate(fd, static_cast<off_t>(whole.size())) == 0);
  REQUIRE(::pwrite(fd, whole.data(), 45'056, 0) == 45'056);
  ::close(fd);
  const auto refused = KvCache::open(disk / "c");
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message, contains("No space left"));
}

TEST_CASE("a read-only disk takes no new cache and lets an old one be read", "[cache]") {
  if (!may_mount()) return;
  const SmallDisk disk(2 * mib);
  Sequence sequence;
  {
    KvCache cache = make(disk / "c");
    need(append(cache, sequence, 50, 1));
  }
  disk.make_read_only();
  const auto made = KvCache::create(disk / "d", cache_geometry(), 10);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == Errc::io);
  CHECK_THAT(made.error().message, contains(disk / "d"));
  CHECK(KvCache::open(disk / "c").error().code == Errc::io);
  const KvCache cache = need(KvCache::open(disk / "c", reading()));
  CHECK(sequence_of(cache).states() == sequence.states());
}

TEST_CASE("a forked child's handle of a file says so and touches nothing", "[cache]") {
  const TempDir dir;
  std::optional<KvCache> cache = make(dir / "c");
  Sequence sequence;
  need(append(*cache, sequence, 20, 1));
  std::optional<KvCache> reader = need(KvCache::open(dir / "c", reading()));
  CHECK(in_fork([&] {
          const std::vector<std::byte> key(34);
          const std::vector<std::byte> value(40);
          std::vector<std::byte> out(34);
          for (KvCache* one : {&*cache, &*reader}) {
            for (const Result<void>& done :
                 {one->store(0, key, value), one->advance(), one->truncate(0), one->clear(),
                  one->sync(), one->read(0, Plane::key, {0, 1}, out), one->load(Prefix())}) {
              if (done || done.error().code != Errc::forked) return 1;
            }
            if (!one->keys(0).empty() || !one->values(0).empty() || one->length() != 0) return 2;
            if (one->snapshot() || one->view(0, Plane::key)) return 3;
            if (one->rollback(one->mark()).error().code != Errc::forked) return 4;
          }
          cache.reset();
          reader.reset();
          return 0;
        }) == 0);
  need(append(*cache, sequence, 20, 2));
  CHECK(sequence_of(*reader).states() == sequence.states());
  CHECK(KvCache::open(dir / "c").error().code == Errc::busy);
  cache.reset();
  CHECK(KvCache::open(dir / "c"));
}

TEST_CASE("the lock goes with its process, though a child that it forked lives on", "[cache]") {
  const TempDir dir;
  { const KvCache made = make(dir / "c"); }
  Child parent("fork_with_cache", {dir / "c"});
  const auto orphan = static_cast<pid_t>(std::stol(parent.hear()));
  CHECK(KvCache::open(dir / "c").error().code == Errc::busy);
  parent.kill();
  CHECK(::kill(orphan, 0) == 0);
  CHECK(KvCache::open(dir / "c"));
  ::kill(orphan, SIGKILL);
}

TEST_CASE("a process that lost all its descriptors keeps the lock, writes on and syncs",
          "[cache]") {
  const TempDir dir(Place::disk);
  Sequence sequence;
  {
    KvCache cache = make(dir / "c");
    need(append(cache, sequence, 10, 1));
  }
  Child child("cache_without_descriptors", {dir / "c"});
  CHECK(child.hear() == "synced");
  CHECK(KvCache::open(dir / "c").error().code == Errc::busy);
  child.tell("done");
  CHECK(child.finish() == 0);
  const KvCache cache = need(KvCache::open(dir / "c"));
  CHECK(cache.length() == 30);
  CHECK(sequence_of(cache).shares(sequence, 10));
}

TEST_CASE("a cache with large regions is laid out, written to its end and opened again",
          "[cache]") {
  const TempDir dir;
  Geometry geometry;
  geometry.dtype = "i8";
  geometry.layers = {{1 << 20, 4096}, {64, 1 << 20}};
  Sequence sequence;
  {
    KvCache cache = need(KvCache::create(dir / "c", geometry, 130));
    CHECK(reinterpret_cast<std::uintptr_t>(cache.keys(0).data()) % 4096 == 0);
    need(append(cache, sequence, 130, 1, true));
    CHECK(cache.store(0, std::vector<std::byte>(1 << 20), std::vector<std::byte>(4096))
              .error()
              .code == Errc::full);
  }
  CHECK(sequence_of(need(KvCache::open(dir / "c"))).states() == sequence.states());
  KvCache memory = need(KvCache::in_memory(geometry, 130));
  Sequence other;
  need(append(memory, other, 130, 1));
  CHECK(sequence_of(memory).states() == sequence.states());
}
