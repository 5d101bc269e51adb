#include <algorithm>
#include <cstring>

#include "archive/writer.hpp"
#include "catch.hpp"
#include "snapshot/output.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::detail;
using namespace esker::test;

namespace {

constexpr std::uint32_t block_tokens = 16;
constexpr std::uint32_t trunk_nodes = 512;
constexpr std::uint32_t branches = 600;

ArchiveNode node_at(std::uint32_t parent, std::uint32_t depth, std::uint32_t seed) {
  ArchiveNode node;
  node.parent = parent;
  node.first_token = depth * block_tokens;
  node.tokens = block_tokens;
  const TokenList tokens = prompt(block_tokens, seed);
  node.label.resize(4 * tokens.size());
  std::memcpy(node.label.data(), tokens.data(), node.label.size());
  return node;
}

/// A long trunk, and behind it many branches in one span.
void write_wide_file(const std::string& path) {
  const auto head = need(new_head(tiny_geometry(block_tokens), small_model(), Lossy::none));
  auto sink = need(FileSink::create(path, false));
  const std::vector<ArchiveNamespace> namespaces(1);
  ArchiveWriter writer = need(ArchiveWriter::start(*sink, head, namespaces, {}));
  ArchiveSpan trunk;
  for (std::uint32_t i = 0; i < trunk_nodes; ++i) {
    trunk.nodes.push_back(node_at(i == 0 ? no_node : i - 1, i, i));
  }
  trunk.rows = trunk_nodes * block_tokens;
  ArchiveSpan wide;
  wide.first_node = trunk_nodes;
  for (std::uint32_t i = 0; i < branches; ++i) {
    wide.nodes.push_back(node_at(trunk_nodes - 1, trunk_nodes, 10'000 + i));
  }
  wide.rows = branches * block_tokens;
  const RowReader zeros = [](std::size_t, std::uint32_t, std::span<std::byte> out) -> Result<void> {
    std::fill(out.begin(), out.end(), std::byte{0});
    return {};
  };
  need(writer.span(trunk, zeros));
  need(writer.span(wide, zeros));
  static_cast<void>(need(writer.finish()));
  need(sink->commit());
}

}  // namespace

TEST_CASE("a small file whose chains spell many tokens is refused before memory is taken",
          "[snapshot]") {
  const TempDir dir;
  write_wide_file(dir / "wide.esnap");
  Store store = make_store(dir / "s", tiny_geometry(block_tokens), small_options(64 * mib));
  Snapshot snapshot = need(Snapshot::open(dir / "wide.esnap"));
  const auto refused = import_snapshot(store, snapshot);
  REQUIRE(refused.error().code == Errc::corrupt);
  CHECK_THAT(refused.error().message, contains("tokens spelled"));
  CHECK(store.stats().blocks_ready == trunk_nodes);
  // Written anew, its spans keep to the bound.
  std::vector<Snapshot> inputs;
  inputs.push_back(need(Snapshot::open(dir / "wide.esnap")));
  need(rewrite_snapshots(inputs, dir / "mended.esnap"));
  Snapshot mended = need(Snapshot::open(dir / "mended.esnap"));
  CHECK(need(import_snapshot(store, mended)).stored_blocks == branches);
}
