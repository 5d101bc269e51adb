#include "catch.hpp"

#include <filesystem>

#include "snapshot_support.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

std::vector<Snapshot> opened(const std::vector<std::string>& paths) {
  std::vector<Snapshot> all;
  for (const std::string& path : paths) all.push_back(need(Snapshot::open(path)));
  return all;
}

Result<ExportReport> rewritten(const std::vector<std::string>& from, const std::string& to,
                               const RewriteOptions& options = {}) {
  std::vector<Snapshot> inputs = opened(from);
  return rewrite_snapshots(inputs, to, options);
}

}  // namespace

TEST_CASE("a snapshot coded anew holds the same rows, sessions and paths", "[snapshot]") {
  const TempDir dir;
  const Prompts prompts;
  Store from = make_store(dir / "from");
  prompts.put_into(from);
  saved_session(from, "chat", prompt(75, 1));
  const auto written = need(export_snapshot(from, dir / "a.esnap"));
  RewriteOptions options;
  options.compression = GENERATE(Compression::raw, Compression::zstd);
  options.threads = GENERATE(1U, 3U);
  const auto again = need(rewritten({dir / "a.esnap"}, dir / "b.esnap", options));
  CHECK(again.blocks == written.blocks);
  CHECK(again.paths == written.paths);
  CHECK(again.sessions == 1);
  CHECK(again.raw_bytes == written.raw_bytes);
  CHECK(again.file_bytes == std::filesystem::file_size(dir / "b.esnap"));
  Snapshot b = need(Snapshot::open(dir / "b.esnap"));
  CHECK(need(b.verify()).damage.empty());
  const auto before = need(need(Snapshot::open(dir / "a.esnap")).contents());
  const auto after = need(b.contents());
  REQUIRE(after.paths.size() == before.paths.size());
  for (const SnapshotPath& path : before.paths) {
    const bool there = std::any_of(after.paths.begin(), after.paths.end(),
                                   [&](const auto& each) { return each.path == path.path; });
    CHECK(there);
  }
  Store to = make_store(dir / "to");
  CHECK(import_file(to, dir / "b.esnap").stored_blocks == written.blocks);
  prompts.check(to);
  CHECK(need(Session::resume(to, "chat")).reusable() == 75);
}

TEST_CASE("several snapshots are joined into one that holds each path and session once",
          "[snapshot]") {
  const TempDir dir;
  Store a = make_store(dir / "a");
  Store b = make_store(dir / "b");
  const TokenList trunk = prompt(100, 1);
  const TokenList left = fork_at(trunk, 48, prompt(40, 2));
  const TokenList right = fork_at(trunk, 80, prompt(40, 3));
  put(a, trunk);
  put(a, left);
  put(b, first(trunk, 80));
  put(b, right);
  put(b, trunk, "lora=1");
  put_keys(a, Prompts().keys);
  put_keys(b, Prompts().keys);
  saved_session(a, "chat", left);
  saved_session(b, "chat", right);
  saved_session(b, "other", right);
  need(export_snapshot(a, dir / "a.esnap"));
  need(export_snapshot(b, dir / "b.esnap"));
  const auto joined = need(rewritten({dir / "a.esnap", dir / "b.esnap"}, dir / "c.esnap"));
  CHECK(joined.sessions == 2);
  Store to = make_store(dir / "to");
  CHECK(import_file(to, dir / "c.esnap").stored_blocks == joined.blocks);
  for (const TokenList& tokens : {trunk, left, right}) CHECK(get(to, tokens) == tokens.size());
  CHECK(get(to, trunk, "lora=1") == 100);
  CHECK(get_keys(to, Prompts().keys) == 3);
  CHECK(need(Session::resume(to, "chat")).tokens() == left.size());
  CHECK(need(Session::resume(to, "other")).tokens() == right.size());
  Snapshot c = need(Snapshot::open(dir / "c.esnap"));
  CHECK(need(c.verify()).damage.empty());
}

TEST_CASE("a session is split off with its path and nothing of others", "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  const TokenList trunk = prompt(100, 1);
  const TokenList spoken = fork_at(trunk, 48, prompt(45, 2));
  put(from, trunk);
  put(from, prompt(64, 5), "other-tenant");
  saved_session(from, "chat", spoken);
  saved_session(from, "other", prompt(40, 7));
  need(export_snapshot(from, dir / "all.esnap"));
  RewriteOptions options;
  options.sessions = {"chat"};
  CHECK(need(rewritten({dir / "all.esnap"}, dir / "one.esnap", options)).sessions == 1);
  const Snapshot one = need(Snapshot::open(dir / "one.esnap"));
  const auto contents = need(one.contents());
  CHECK(contents.namespaces.size() == 1);
  CHECK(need(one.match(spoken)) == spoken.size());
  CHECK(need(one.match(trunk)) == 48);
  CHECK(need(one.match(prompt(40, 7))) == 0);
  options.sessions = {"nobody"};
  const auto refused = rewritten({dir / "all.esnap"}, dir / "none.esnap", options);
  REQUIRE(refused.error().code == Errc::missing);
  CHECK_THAT(refused.error().message, contains("nobody"));
  CHECK_FALSE(std::filesystem::exists(dir / "none.esnap"));
}

TEST_CASE("snapshots that do not belong together are not joined", "[snapshot]") {
  const TempDir dir;
  Store a = make_store(dir / "a");
  Store b = make_store(dir / "b", small_geometry(32));
  ModelId model = small_model();
  need(model.set("rope", "1"));
  Store c = need(Store::create(dir / "c", small_geometry(), model, small_options()));
  put(a, prompt(40, 1), "tenant-of-renown");
  need(export_snapshot(a, dir / "a.esnap"));
  need(export_snapshot(a, dir / "a2.esnap"));
  need(export_snapshot(b, dir / "b.esnap"));
  need(export_snapshot(c, dir / "c.esnap"));
  const auto refusal = [&](const std::string& other) {
    return rewritten({dir / "a.esnap", dir / other}, dir / "out.esnap").error();
  };
  CHECK_THAT(refusal("b.esnap").message, contains("block_tokens"));
  CHECK_THAT(refusal("c.esnap").message, contains("rope"));
  const Error salts = refusal("a2.esnap");
  CHECK(salts.code == Errc::invalid);
  CHECK_THAT(salts.message, contains("--namespace"));
  CHECK_FALSE(std::filesystem::exists(dir / "out.esnap"));
  CHECK(rewrite_snapshots({}, dir / "out.esnap").error().code == Errc::invalid);
  // Of one file with itself the digests mean the same.
  const auto twice = need(rewritten({dir / "a.esnap", dir / "a.esnap"}, dir / "out.esnap"));
  CHECK(twice.blocks == 3);
  Store to = make_store(dir / "to");
  CHECK(import_file(to, dir / "out.esnap").stored_blocks == 3);
  CHECK(get(to, prompt(40, 1), "tenant-of-renown") == 40);
}

TEST_CASE("a damaged chunk is never coded anew", "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  put(from, prompt(200, 1));
  ExportOptions raw;
  raw.compression = Compression::raw;
  need(export_snapshot(from, dir / "a.esnap", raw));
  flip_byte(dir / "a.esnap", std::filesystem::file_size(dir / "a.esnap") / 2);
  const auto refused = rewritten({dir / "a.esnap"}, dir / "b.esnap");
  REQUIRE(refused.error().code == Errc::corrupt);
  CHECK_FALSE(std::filesystem::exists(dir / "b.esnap"));
}
