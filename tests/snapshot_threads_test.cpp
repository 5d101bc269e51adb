#include "catch.hpp"

#include "snapshot_support.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

TEST_CASE("threads that code, decode and store a snapshot do not get into each other's way",
          "[snapshot]") {
  const TempDir dir;
  const Prompts prompts(3);
  Store from = make_store(dir / "from");
  prompts.put_into(from);
  for (const Compression compression : {Compression::raw, Compression::lz4, Compression::zstd}) {
    ExportOptions how;
    how.compression = compression;
    how.threads = 4;
    how.replace = true;
    need(export_snapshot(from, dir / "s.esnap", how));
    Store to = make_store(dir / std::string(name(compression)));
    ImportOptions options = of_tenants();
    options.threads = 4;
    CHECK(import_file(to, dir / "s.esnap", options).refused_blocks == 0);
    prompts.check(to);
    std::vector<Snapshot> inputs;
    inputs.push_back(need(Snapshot::open(dir / "s.esnap")));
    RewriteOptions rewrite;
    rewrite.threads = 4;
    rewrite.replace = true;
    CHECK(need(rewrite_snapshots(inputs, dir / "t.esnap", rewrite)).blocks > 0);
    Snapshot again = need(Snapshot::open(dir / "t.esnap"));
    CHECK(need(again.verify()).damage.empty());
  }
}
