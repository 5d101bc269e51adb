#include "catch.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <random>

#include "snapshot_support.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"
#include "support/tracer.hpp"

using namespace esker;
using namespace esker::test;

namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t stride = 29;
constexpr std::uint64_t export_stride = 13;
#else
constexpr std::uint64_t stride = 5;
constexpr std::uint64_t export_stride = 1;
#endif

TokenList family_prompt(std::mt19937_64& random) {
  const std::uint64_t family = random() % 6;
  const TokenList trunk = prompt(96, 1000 + family);
  const auto kept = static_cast<std::uint32_t>(random() % 97);
  return fork_at(trunk, kept, prompt(static_cast<std::uint32_t>(random() % 60), random() % 40));
}

/// Arguments: store, seed. Stores, evicts and removes until it is killed.
int write_on(const Arguments& arguments) {
  Store store = need(Store::open(arguments[0]));
  std::mt19937_64 random(std::stoul(arguments[1]));
  say("working");
  for (std::uint64_t i = 0;; ++i) {
    static_cast<void>(need(try_put(store, family_prompt(random))));
    if (i % 50 == 49) need(store.evict(store.stats().store_bytes / 2));
    if (i % 20 == 19) {
      static_cast<void>(store.remove(std::array{path_of(store, family_prompt(random))}));
    }
  }
}

/// Arguments: store, named pipe.
int export_to_pipe(const Arguments& arguments) {
  const Store store = need(Store::open(arguments[0]));
  const int fd = ::open(arguments[1].c_str(), O_WRONLY);
  need(export_snapshot(store, fd, "a pipe"));
  ::close(fd);
  return 0;
}

/// Arguments: store, file. Traced from the first system call of the import to its last.
int import_traced(const Arguments& arguments) {
  Store store = need(Store::open(arguments[0]));
  Snapshot snapshot = need(Snapshot::open(arguments[1]));
  mark_begin();
  const auto imported = import_snapshot(store, snapshot, of_tenants());
  mark_end();
  need(imported);
  return 0;
}

/// Arguments: store, file.
int import_beside_others(const Arguments& arguments) {
  Store store = need(Store::open(arguments[0]));
  say("ready");
  listen();
  const auto report = import_file(store, arguments[1]);
  return report.refused_blocks == 0 && report.unreachable_tokens == 0 ? 0 : 1;
}

/// Arguments: store, file.
int export_traced(const Arguments& arguments) {
  const Store store = need(Store::open(arguments[0]));
  mark_begin();
  const auto exported = export_snapshot(store, arguments[1]);
  mark_end();
  need(exported);
  return 0;
}

const RoleName write_on_role("write on", &write_on);
const RoleName export_to_pipe_role("export to pipe", &export_to_pipe);
const RoleName import_traced_role("import traced", &import_traced);
const RoleName import_beside_others_role("import beside others", &import_beside_others);
const RoleName export_traced_role("export traced", &export_traced);

/// Every path that the snapshot lists is there from the root, with the right rows.
void check_rows(const Snapshot& snapshot) {
  const SnapshotContents contents = need(snapshot.contents());
  for (const SnapshotPath& path : contents.paths) {
    if (path.key) continue;
    const TokenList tokens = need(snapshot.token_ids(path.path));
    REQUIRE(tokens.size() == path.tokens);
    REQUIRE(need(snapshot.match(tokens, path.name_space)) == path.tokens);
    const Content content(tokens);
    each_plane(snapshot.geometry(), [&](std::uint32_t layer, Plane plane) {
      const auto expected = content.rows(snapshot.geometry(), layer, plane, {0, path.tokens});
      std::vector<std::byte> rows(expected.size());
      need(snapshot.copy(tokens, path.name_space, layer, plane, {}, rows));
      REQUIRE(rows == expected);
    });
  }
}

}  // namespace

TEST_CASE("an export while ten processes write gives a whole and consistent file", "[snapshot]") {
  const TempDir dir;
  { const Store store = make_store(dir / "s", small_geometry(), small_options(1 * mib)); }
  std::vector<Child> writers;
  for (int i = 0; i < 10; ++i) writers.push_back(Child("write on", {dir / "s", std::to_string(i)}));
  for (Child& writer : writers) writer.hear();
  const bool inspect = GENERATE(false, true);
  Options options;
  options.access = inspect ? Access::inspect : Access::write;
  std::uint64_t blocks = 0;
  for (int round = 0; round < 8; ++round) {
    const Store store = need(Store::open(dir / "s", options));
    ExportOptions how;
    how.replace = true;
    how.threads = 1 + static_cast<std::uint32_t>(round) % 2;
    const auto written = need(export_snapshot(store, dir / "s.esnap", how));
    CHECK(written.damaged_blocks == 0);
    blocks += written.blocks;
    Snapshot snapshot = need(Snapshot::open(dir / "s.esnap"));
    REQUIRE(need(snapshot.verify()).damage.empty());
    check_rows(snapshot);
  }
  CHECK(blocks > 0);
  for (Child& writer : writers) CHECK(writer.kill() == 128 + SIGKILL);
  Store store = need(Store::open(dir / "s"));
  need(store.reap());
  CHECK(store.stats().blocks_pinned == 0);
  CHECK(store.stats().counters.bad_blocks == 0);
}

TEST_CASE("a store moves through a pipe from one process to another", "[snapshot]") {
  const TempDir dir;
  const Prompts prompts;
  {
    Store from = make_store(dir / "from");
    prompts.put_into(from);
    saved_session(from, "chat", prompt(75, 1));
  }
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  Child exporter("export to pipe", {dir / "from", dir / "pipe"});
  Store to = make_store(dir / "to");
  const bool by_name = GENERATE(true, false);
  const int fd = by_name ? -1 : ::open((dir / "pipe").c_str(), O_RDONLY);
  Snapshot stream = need(by_name ? Snapshot::open(dir / "pipe") : Snapshot::open(fd, "a pipe"));
  CHECK_FALSE(stream.seekable());
  CHECK(stream.contents().error().code == Errc::invalid);
  CHECK(stream.match(prompt(5, 7)).error().code == Errc::invalid);
  const auto stored = need(import_snapshot(to, stream, of_tenants()));
  CHECK(stored.sessions == 1);
  CHECK(import_snapshot(to, stream).error().code == Errc::invalid);
  CHECK(stream.verify().error().code == Errc::invalid);
  CHECK(exporter.finish() == 0);
  if (fd >= 0) CHECK(::close(fd) == 0);  // it stayed ours
  prompts.check(to);
}

TEST_CASE("two processes that import the same file at once store it once", "[snapshot]") {
  const TempDir dir;
  const Prompts prompts(2);
  Store from = make_store(dir / "from");
  prompts.put_into(from);
  saved_session(from, "chat", prompt(75, 1));
  const auto written = need(export_snapshot(from, dir / "s.esnap"));
  for (int round = 0; round < 5; ++round) {
    const std::string path = dir / ("to" + std::to_string(round));
    Store to = make_store(path, small_geometry(), small_options(16 * mib));
    std::vector<Child> importers;
    for (int i = 0; i < 2; ++i) {
      importers.push_back(Child("import beside others", {path, dir / "s.esnap"}));
      REQUIRE(importers.back().hear() == "ready");
    }
    for (Child& importer : importers) importer.tell("go");
    for (Child& importer : importers) CHECK(importer.finish() == 0);
    prompts.check(to);
    CHECK(need(Session::resume(to, "chat")).reusable() == 75);
    CHECK(count_of_blocks(to) == written.blocks);
    CHECK(need(to.verify()).damage.empty());
  }
}

TEST_CASE("a snapshot inside another file is read from where the descriptor stands", "[snapshot]") {
  const TempDir dir;
  const Prompts prompts;
  Store from = make_store(dir / "from");
  prompts.put_into(from);
  const int out = ::open((dir / "f").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(::write(out, "before", 6) == 6);
  need(export_snapshot(from, out, "f"));
  REQUIRE(::lseek(out, 6, SEEK_SET) == 6);
  Store to = make_store(dir / "to");
  Snapshot inside = need(Snapshot::open(out, "f"));
  CHECK_FALSE(inside.seekable());
  need(import_snapshot(to, inside, of_tenants()));
  ::close(out);
  prompts.check(to);
}

TEST_CASE("an import that is killed anywhere leaves whole blocks, and the next one completes it",
          "[snapshot]") {
  const TempDir dir;
  std::vector<std::pair<TokenList, std::string>> all;
  {
    Store from = make_store(dir / "from", small_geometry(), small_options(2 * mib));
    const TokenList trunk = prompt(60, 1);
    for (std::uint32_t i = 0; i < 3; ++i) {
      all.emplace_back(fork_at(trunk, 24 * i, prompt(40, 10 + i)), i == 2 ? "other-tenant" : "");
      put(from, all.back().first, all.back().second);
    }
    put_keys(from, Prompts().keys);
    Session session = saved_session(from, "chat", all[0].first);
    need(session.attach("window", std::vector<std::byte>(3'000)));
    need(session.keep());
  }
  need(export_snapshot(need(Store::open(dir / "from")), dir / "s.esnap"));
  const auto prepare = [&] {
    std::filesystem::remove_all(dir / "to");
    const Store to = make_store(dir / "to", small_geometry(), small_options(2 * mib));
  };
  prepare();
  const auto calls = count_system_calls("import traced", {dir / "to", dir / "s.esnap"});
  REQUIRE(calls > 30);
  for (std::uint64_t stop = 1; stop < 2 * calls; stop += stride) {
    prepare();
    {
      Tracee tracee("import traced", {dir / "to", dir / "s.esnap"});
      if (!tracee.run(stop)) break;
      tracee.kill();
    }
    CAPTURE(stop, calls);
    Store to = need(Store::open(dir / "to"));
    for (const auto& [tokens, name_space] : all) get(to, tokens, name_space);
    REQUIRE(import_file(to, dir / "s.esnap").refused_blocks == 0);
    for (const auto& [tokens, name_space] : all) {
      REQUIRE(get(to, tokens, name_space) == tokens.size());
    }
    REQUIRE(get_keys(to, Prompts().keys) == 3);
    {
      const Session session = need(Session::resume(to, "chat"));
      REQUIRE(wrong_session(session) == "");
      REQUIRE(need(session.attachment("window")).size() == 3'000);
    }
    REQUIRE(need(Session::describe(to, "chat")).kept_tokens == all[0].first.size());
    REQUIRE(need(to.verify()).damage.empty());
    need(to.reap());
    REQUIRE(to.stats().blocks_pinned == 0);
    REQUIRE(to.stats().blocks_reserved == 0);
  }
}

TEST_CASE("an export that is killed anywhere leaves nothing under the final name", "[snapshot]") {
  const TempDir dir;
  {
    Store from = make_store(dir / "from", small_geometry(), small_options(2 * mib));
    put(from, prompt(60, 1));
    saved_session(from, "chat", prompt(60, 1));
  }
  const auto calls = count_system_calls("export traced", {dir / "from", dir / "s.esnap"});
  REQUIRE(std::filesystem::remove(dir / "s.esnap"));
  std::uint64_t nothing = 0;
  for (std::uint64_t stop = 1; stop < 2 * calls; stop += export_stride) {
    {
      Tracee tracee("export traced", {dir / "from", dir / "s.esnap"});
      if (!tracee.run(stop)) break;
      tracee.kill();
    }
    CAPTURE(stop, calls);
    if (!std::filesystem::exists(dir / "s.esnap")) {
      ++nothing;
      continue;
    }
    Snapshot snapshot = need(Snapshot::open(dir / "s.esnap"));
    REQUIRE(need(snapshot.verify()).damage.empty());
    REQUIRE(need(snapshot.match(prompt(60, 1))) == 60);
    std::filesystem::remove(dir / "s.esnap");
  }
  CHECK(nothing > 0);
  Store from = need(Store::open(dir / "from"));
  need(from.reap());
  CHECK(from.stats().blocks_pinned == 0);
}

TEST_CASE("a damaged or cut file leaves a store with right and whole blocks only", "[snapshot]") {
  const TempDir dir;
  const Prompts prompts(4);
  {
    Store from = make_store(dir / "from");
    prompts.put_into(from);
    saved_session(from, "chat", prompt(75, 1));
  }
  ExportOptions how;
  how.compression = GENERATE(Compression::raw, Compression::lz4);
  need(export_snapshot(need(Store::open(dir / "from")), dir / "s.esnap", how));
  const std::vector<std::byte> whole = read_file(dir / "s.esnap");
  std::mt19937_64 random(1);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::byte> bytes = whole;
    const std::size_t at = random() % bytes.size();
    if (round % 2 == 0) {
      bytes.resize(at);
    } else {
      bytes[at] ^= std::byte{0x20};
    }
    write_file(dir / "bad.esnap", bytes);
    CAPTURE(round, at);
    std::filesystem::remove_all(dir / "to");
    Store to = make_store(dir / "to");
    Result<Snapshot> bad = Snapshot::open(dir / "bad.esnap");
    if (bad) {
      const auto imported = import_snapshot(to, *bad, of_tenants());
      REQUIRE_FALSE(imported);
      REQUIRE(
          (imported.error().code == Errc::corrupt || imported.error().code == Errc::incompatible));
    }
    for (const auto& [tokens, name_space] : prompts.all) get(to, tokens, name_space);
    REQUIRE(need(to.verify()).damage.empty());
    REQUIRE(to.stats().blocks_pinned == 0);
    REQUIRE(to.stats().blocks_reserved == 0);
    if (round % 10 != 0) continue;
    import_file(to, dir / "s.esnap");
    prompts.check(to);
  }
}
