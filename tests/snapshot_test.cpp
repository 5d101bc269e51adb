#include "catch.hpp"

#include <cmath>
#include <cstring>
#include <filesystem>

#include "snapshot_support.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

ExportOptions coded(Compression compression, std::uint32_t threads = 1) {
  ExportOptions options;
  options.compression = compression;
  options.threads = threads;
  return options;
}

}  // namespace

TEST_CASE("a snapshot carries every path, fork, part of a block and key into another store",
          "[snapshot]") {
  const TempDir dir;
  const auto compression = GENERATE(Compression::raw, Compression::lz4, Compression::zstd);
  const std::uint32_t threads = GENERATE(1U, 3U);
  const std::uint32_t block_tokens = GENERATE(1U, 16U, 60U);
  const Prompts prompts;
  Store from = make_store(dir / "from", small_geometry(block_tokens));
  prompts.put_into(from);
  const auto written = need(export_snapshot(from, dir / "s.esnap", coded(compression, threads)));
  CHECK(written.blocks == count_of_blocks(from));
  CHECK(written.paths == need(from.paths()).size());
  CHECK(written.raw_bytes == written.tokens * from.geometry().token_bytes());
  CHECK(written.file_bytes == std::filesystem::file_size(dir / "s.esnap"));
  CHECK(written.gone_blocks + written.damaged_blocks == 0);

  Store to = make_store(dir / "to", small_geometry(block_tokens));
  ImportOptions options = of_tenants();
  options.threads = threads;
  const auto stored = import_file(to, dir / "s.esnap", options);
  CHECK(stored.blocks == written.blocks);
  CHECK(stored.stored_blocks == written.blocks);
  CHECK(stored.reachable_tokens == written.tokens);
  CHECK(stored.unreachable_tokens == 0);
  CHECK(stored.raw_bytes == written.raw_bytes);
  prompts.check(to);
  CHECK(need(to.verify()).damage.empty());
  CHECK(to.stats().blocks_pinned == 0);
  CHECK(to.stats().blocks_reserved == 0);

  const auto again = import_file(to, dir / "s.esnap", options);
  CHECK(again.present_blocks == written.blocks);
  CHECK(again.stored_blocks == 0);
  CHECK(again.raw_bytes == 0);
  CHECK(count_of_blocks(to) == written.blocks);
}

TEST_CASE("a file of a snapshot tells what it holds and gives out any rows", "[snapshot]") {
  const TempDir dir;
  const Prompts prompts;
  Store from = make_store(dir / "from");
  prompts.put_into(from);
  const auto written = need(export_snapshot(from, dir / "s.esnap"));
  Snapshot snapshot = need(Snapshot::open(dir / "s.esnap"));
  REQUIRE(snapshot.seekable());
  CHECK(snapshot.geometry() == from.geometry());
  CHECK(snapshot.model() == from.model());
  const auto contents = need(snapshot.contents());
  CHECK(contents.blocks == written.blocks);
  CHECK(contents.tokens == written.tokens);
  CHECK(contents.paths.size() == written.paths);
  CHECK(contents.namespaces.size() == 4);
  std::uint64_t own = 0;
  for (const SnapshotPath& path : contents.paths) own += path.own_bytes;
  CHECK(own < contents.raw_bytes);

  for (const auto& [tokens, name_space] : prompts.all) {
    if (!name_space.empty() && name_space != "lora=0011") continue;
    std::uint32_t index = 0;
    while (contents.namespaces[index].text != name_space) ++index;
    REQUIRE(contents.namespaces[index].named);
    REQUIRE(need(snapshot.match(tokens, index)) == tokens.size());
    const Content content(tokens, name_space);
    const auto end = static_cast<std::uint32_t>(tokens.size());
    const std::array<TokenRange, 3> ranges = {{{0, end}, {end / 3, end / 2}, {end - 1, end}}};
    each_plane(from.geometry(), [&](std::uint32_t layer, Plane plane) {
      for (const TokenRange range : ranges) {
        const auto expected = content.rows(from.geometry(), layer, plane, range);
        std::vector<std::byte> out(expected.size());
        need(snapshot.copy(tokens, index, layer, plane, range, out));
        REQUIRE(out == expected);
      }
    });
  }
  for (const SnapshotPath& path : contents.paths) {
    if (path.key) {
      CHECK(snapshot.token_ids(path.path).error().code == Errc::invalid);
    } else {
      CHECK(need(snapshot.match(need(snapshot.token_ids(path.path)), path.name_space)) ==
            path.tokens);
    }
  }
  CHECK(need(snapshot.verify()).damage.empty());
  CHECK(need(snapshot.verify()).blocks == written.blocks);
}

TEST_CASE("questions that a snapshot cannot answer are refused by name", "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  const TokenList tokens = prompt(40, 1);
  put(from, tokens);
  need(export_snapshot(from, dir / "s.esnap"));
  const Snapshot snapshot = need(Snapshot::open(dir / "s.esnap"));
  std::vector<std::byte> row(34);
  CHECK(snapshot.copy(tokens, 9, 0, Plane::key, {0, 1}, row).error().code == Errc::invalid);
  CHECK(snapshot.copy(tokens, 0, 7, Plane::key, {0, 1}, row).error().code == Errc::invalid);
  CHECK(snapshot.copy(tokens, 0, 1, Plane::value, {0, 1}, row).error().code == Errc::invalid);
  CHECK(snapshot.copy(tokens, 0, 0, Plane::key, {0, 2}, row).error().code == Errc::invalid);
  CHECK(snapshot.copy(tokens, 0, 0, Plane::key, {40, 41}, row).error().code == Errc::invalid);
  CHECK(snapshot.copy(tokens, 0, 0, Plane::key, {2, 1}, row).error().code == Errc::invalid);
  CHECK(snapshot.token_ids(12345).error().code == Errc::missing);
  CHECK(snapshot.session_token_ids("nobody").error().code == Errc::missing);
  CHECK(Snapshot::open(dir / "nothing").error().code == Errc::missing);
  CHECK_FALSE(Snapshot::open(dir.path().string()));
  CHECK(Snapshot::open(dir / "from/esker").error().code == Errc::corrupt);
}

TEST_CASE("an export takes the paths, prompts and sessions that it is asked for, and no others",
          "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  const TokenList trunk = prompt(100, 1);
  const TokenList branch = fork_at(trunk, 48, prompt(60, 2));
  const TokenList other = prompt(70, 3);
  const TokenList spoken = fork_at(trunk, 32, prompt(30, 4));
  for (const TokenList& each : {trunk, branch, other}) put(from, each);
  saved_session(from, "chat", spoken);
  const auto found = [&](const ExportOptions& options, const TokenList& tokens) {
    ExportOptions again = options;
    again.replace = true;
    need(export_snapshot(from, dir / "s.esnap", again));
    return need(need(Snapshot::open(dir / "s.esnap")).match(tokens));
  };
  ExportOptions by_path;
  by_path.paths = {path_of(from, branch)};
  CHECK(found(by_path, branch) == 108);
  CHECK(found(by_path, trunk) == 48);
  CHECK(found(by_path, other) == 0);
  ExportOptions by_prompt;
  by_prompt.prompts = {{first(other, 40), ""}};
  CHECK(found(by_prompt, other) == 48);  // the last block whole
  CHECK(found(by_prompt, trunk) == 0);
  ExportOptions by_session;
  by_session.sessions = {"chat"};
  CHECK(found(by_session, spoken) == 62);
  CHECK(found(by_session, trunk) == 32);
  CHECK(need(need(Snapshot::open(dir / "s.esnap")).session_token_ids("chat")) == spoken);
  by_session.paths = by_path.paths;
  CHECK(found(by_session, spoken) == 62);
  CHECK(found(by_session, branch) == 108);
  ExportOptions missing;
  missing.paths = {42};
  missing.replace = true;
  CHECK(export_snapshot(from, dir / "s.esnap", missing).error().code == Errc::missing);
  missing.paths.clear();
  missing.sessions = {"nobody"};
  const auto refused = export_snapshot(from, dir / "s.esnap", missing);
  REQUIRE(refused.error().code == Errc::missing);
  CHECK_THAT(refused.error().message, contains("nobody"));
}

TEST_CASE("a file appears only whole, and an existing one is replaced only when asked",
          "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  put(from, prompt(40, 1));
  write_file(dir / "s.esnap", std::vector<std::byte>(10));
  CHECK(export_snapshot(from, dir / "s.esnap").error().code == Errc::invalid);
  CHECK(read_file(dir / "s.esnap").size() == 10);
  ExportOptions missing;
  missing.sessions = {"nobody"};
  missing.replace = true;
  CHECK_FALSE(export_snapshot(from, dir / "s.esnap", missing));
  CHECK(read_file(dir / "s.esnap").size() == 10);
  CHECK_FALSE(export_snapshot(from, dir / "t.esnap", missing));
  CHECK_FALSE(std::filesystem::exists(dir / "t.esnap"));
  ExportOptions replace;
  replace.replace = true;
  need(export_snapshot(from, dir / "s.esnap", replace));
  CHECK(need(need(Snapshot::open(dir / "s.esnap")).match(prompt(40, 1))) == 40);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    ++files;
  }
  CHECK(files == 2);  // the store and the snapshot
}

TEST_CASE("paths of more blocks than a span has nodes come back whole", "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from", tiny_geometry(), small_options(64 * mib));
  const TokenList trunk = prompt(9'000, 1);
  const TokenList branch = fork_at(trunk, 4'500, prompt(5'000, 2));
  put(from, trunk);
  put(from, branch);
  const auto written = need(export_snapshot(from, dir / "s.esnap"));
  CHECK(written.blocks == 14'000);
  CHECK(written.paths == 2);
  Store to = make_store(dir / "to", tiny_geometry(), small_options(64 * mib));
  CHECK(import_file(to, dir / "s.esnap").stored_blocks == 14'000);
  CHECK(get(to, trunk) == 9'000);
  CHECK(get(to, branch) == 9'500);
}

TEST_CASE("an empty store gives a snapshot of nothing", "[snapshot]") {
  const TempDir dir;
  const Store from = make_store(dir / "from");
  const auto written = need(export_snapshot(from, dir / "s.esnap"));
  CHECK(written.blocks == 0);
  Store to = make_store(dir / "to");
  CHECK(import_file(to, dir / "s.esnap").blocks == 0);
  Snapshot snapshot = need(Snapshot::open(dir / "s.esnap"));
  CHECK(need(snapshot.contents()).paths.empty());
  CHECK(need(snapshot.verify()).damage.empty());
}

TEST_CASE("a store that is only inspected can be exported", "[snapshot]") {
  const TempDir dir;
  const Prompts prompts;
  {
    Store from = make_store(dir / "from");
    prompts.put_into(from);
  }
  Options options;
  options.access = Access::inspect;
  const Store from = need(Store::open(dir / "from", options));
  const auto written = need(export_snapshot(from, dir / "s.esnap"));
  Store to = make_store(dir / "to");
  CHECK(import_file(to, dir / "s.esnap").stored_blocks == written.blocks);
  prompts.check(to);
}

TEST_CASE("another geometry or model id is refused by the names of what differs", "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  put(from, prompt(40, 1));
  need(export_snapshot(from, dir / "s.esnap"));
  const auto refusal = [&](Store store, const ImportOptions& options = {}) {
    Snapshot snapshot = need(Snapshot::open(dir / "s.esnap"));
    const auto imported = import_snapshot(store, snapshot, options);
    REQUIRE_FALSE(imported);
    CHECK(count_of_blocks(store) == 0);
    return imported.error();
  };
  Geometry other = small_geometry();
  other.layers[1].key_row_bytes = 68;
  CHECK_THAT(refusal(make_store(dir / "rows", other)).message, contains("layer 1"));
  other = small_geometry();
  other.dtype = "bf16";
  CHECK_THAT(refusal(make_store(dir / "dtype", other)).message, contains("dtype"));
  CHECK_THAT(refusal(make_store(dir / "blocks", small_geometry(32))).message,
             contains("block_tokens"));
  ModelId model = small_model();
  need(model.set("rope", "500"));
  const auto store = [&](const std::string& name) {
    return need(Store::create(dir / name, small_geometry(), model, small_options()));
  };
  const Error differs = refusal(store("model"));
  CHECK(differs.code == Errc::incompatible);
  CHECK_THAT(differs.message, contains("rope"));
  need(model.set("rank", "1/2"));
  ImportOptions assume;
  assume.assume_same = {"rope"};
  const Error rank = refusal(store("rank"), assume);
  CHECK_THAT(rank.message, contains("rank"));
  CHECK_THAT(rank.message, !contains("rope"));
  assume.assume_same = {"rope", "rank"};
  Store assumed = store("assumed");
  CHECK(import_file(assumed, dir / "s.esnap", assume).stored_blocks == 3);
  CHECK(get(assumed, prompt(40, 1)) == 40);
}

TEST_CASE("smaller blocks than those of the file take its rows all the same", "[snapshot]") {
  const TempDir dir;
  const Prompts prompts;
  Store from = make_store(dir / "from", small_geometry(32));
  for (const auto& [tokens, name_space] : prompts.all) put(from, tokens, name_space);
  need(export_snapshot(from, dir / "s.esnap"));
  Store to = make_store(dir / "to", small_geometry(8));
  const auto stored = import_file(to, dir / "s.esnap");
  CHECK(stored.stored_blocks == stored.blocks);
  for (const auto& [tokens, name_space] : prompts.all) {
    CHECK(get(to, tokens, name_space) == tokens.size());
  }
  CHECK(import_file(to, dir / "s.esnap").present_blocks == stored.blocks);
  put_keys(from, prompts.keys);
  ExportOptions replace;
  replace.replace = true;
  need(export_snapshot(from, dir / "s.esnap", replace));
  Snapshot snapshot = need(Snapshot::open(dir / "s.esnap"));
  CHECK(import_snapshot(to, snapshot, of_tenants()).error().code == Errc::incompatible);
}

TEST_CASE("a store that is too small takes what it has room for, and paths without gaps",
          "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from", small_geometry(), small_options(16 * mib));
  std::vector<TokenList> all;
  const TokenList trunk = prompt(500, 1);
  for (std::uint32_t i = 0; i < 40; ++i) {
    all.push_back(fork_at(trunk, 16 * i % 480, prompt(300, 10 + i)));
    put(from, all.back());
  }
  const auto written = need(export_snapshot(from, dir / "s.esnap"));
  Store to = make_store(dir / "to", small_geometry(), small_options(1 * mib));
  const auto stored = import_file(to, dir / "s.esnap");
  CHECK(stored.refused_blocks > 0);
  CHECK(stored.stored_blocks > 0);
  CHECK(stored.stored_blocks + stored.refused_blocks == written.blocks);
  CHECK(to.stats().blocks_pinned == 0);
  std::uint64_t found = 0;
  for (const TokenList& tokens : all) found += get(to, tokens);
  CHECK(found >= stored.stored_blocks);
  CHECK(count_of_blocks(to) == stored.stored_blocks);
  CHECK(need(to.verify()).damage.empty());
}

TEST_CASE("an import makes room by evicting what others have not used, not what it has brought",
          "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  put(from, prompt(600, 1));
  const auto written = need(export_snapshot(from, dir / "s.esnap"));
  Store to = make_store(dir / "to", small_geometry(), small_options(1 * mib));
  for (std::uint64_t seed = 100; seed < 160; ++seed) put(to, prompt(160, seed));
  const auto stored = import_file(to, dir / "s.esnap");
  CHECK(stored.stored_blocks == written.blocks);
  CHECK(get(to, prompt(600, 1)) == 600);
}

TEST_CASE("a damaged block is left out with what hangs below it, and counted", "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  const TokenList tokens = prompt(100, 1);
  const TokenList branch = fork_at(tokens, 32, prompt(60, 2));
  put(from, tokens);
  put(from, branch);
  REQUIRE(get(from, tokens) == 100);  // what was verified before counts no more
  const DiskBlock block = find_block(dir / "from", tokens, 48);
  flip_byte(block.file, row_offset(block, 16, 2, Plane::value, 5) + 3);
  const bool inspect = GENERATE(false, true);
  Options options;
  options.access = inspect ? Access::inspect : Access::write;
  const Store reader = need(Store::open(dir / "from", options));
  const auto written = need(export_snapshot(inspect ? reader : from, dir / "s.esnap"));
  CHECK(written.damaged_blocks == 4);
  CHECK(written.gone_blocks == 0);
  Store to = make_store(dir / "to");
  CHECK(import_file(to, dir / "s.esnap").stored_blocks == written.blocks);
  CHECK(get(to, tokens) == 48);
  CHECK(get(to, branch) == 92);
}

TEST_CASE("many damaged blocks of one span are all left out", "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    put(from, prompt(30, seed));
    if (seed % 3 != 0) continue;
    const DiskBlock block = find_block(dir / "from", prompt(30, seed), 16);
    flip_byte(block.file, row_offset(block, 16, seed % 2, Plane::key, 5) + 3);
  }
  const auto written = need(export_snapshot(from, dir / "s.esnap"));
  CHECK(written.damaged_blocks == 14);
  CHECK(written.blocks == 80 - 14);
  Snapshot snapshot = need(Snapshot::open(dir / "s.esnap"));
  CHECK(need(snapshot.verify()).damage.empty());
}
