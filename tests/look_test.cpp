// What the tools that look at a store compute, without a terminal or a browser.
#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "branches.hpp"
#include "catch.hpp"
#include "html.hpp"
#include "icicle.hpp"
#include "plain_text.hpp"
#include "progress.hpp"
#include "styled_line.hpp"

using namespace esker;
using namespace esker::cli;

namespace {

constexpr std::uint64_t gib = 1ULL << 30;
constexpr std::uint64_t block_bytes = 1000;

BlockInfo block_after(std::uint32_t parent, std::uint32_t first_token = 0) {
  BlockInfo block;
  block.parent = parent;
  block.first_token = first_token;
  block.tokens = 16;
  block.last_used_unix_ns = 1'000 + first_token;
  return block;
}

void count_children(std::vector<BlockInfo>& blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].path = i + 1;
    if (blocks[i].parent != BlockInfo::none) ++blocks[blocks[i].parent].children;
  }
}

/// A trie of `count` blocks that fork at random.
std::vector<BlockInfo> random_trie(std::uint32_t count, std::uint32_t reach) {
  std::mt19937 random(count);
  std::vector<BlockInfo> blocks;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto back = static_cast<std::uint32_t>(1 + random() % reach);
    blocks.push_back(block_after(i < back ? BlockInfo::none : i - back, 16 * i));
  }
  count_children(blocks);
  return blocks;
}

void check_layout(const std::vector<Branch>& branches, const IcicleLimits& limits) {
  const std::vector<Icicle> pieces = lay_out(branches, limits);
  REQUIRE(!pieces.empty());
  CHECK(pieces.size() <= limits.pieces);
  CHECK(pieces.front().width == limits.width);
  std::map<std::uint32_t, const Icicle*> by_branch;
  std::map<std::uint32_t, std::vector<const Icicle*>> rows;
  for (const Icicle& piece : pieces) {
    if (piece.branch != UINT32_MAX) by_branch[piece.branch] = &piece;
    rows[piece.row].push_back(&piece);
  }
  constexpr double nearly = 1e-6;
  for (auto& [row, line] : rows) {
    CHECK(row < limits.rows);
    std::sort(line.begin(), line.end(),
              [](const Icicle* a, const Icicle* b) { return a->x < b->x; });
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
      CHECK(line[i]->x + line[i]->width <= line[i + 1]->x + nearly);
    }
    CHECK(line.back()->x + line.back()->width <= limits.width + nearly);
  }
  for (const auto& [at, piece] : by_branch) {
    if (at == 0) continue;
    const auto parent = by_branch.find(branches[at].parent);
    REQUIRE(parent != by_branch.end());
    CHECK(parent->second->row + 1 == piece->row);
    CHECK(parent->second->x <= piece->x + nearly);
    CHECK(piece->x + piece->width <= parent->second->x + parent->second->width + nearly);
  }
}

}  // namespace

TEST_CASE("progress tells what is done, how fast, and how long the rest takes", "[look]") {
  CHECK(progress_text("verified", gib, 4 * gib, 0.5 * gib) ==
        "verified 1.0 GiB of 4.0 GiB (25.0 %), 512.0 MiB/s, 6 s left");
  CHECK(progress_text("verified", gib, 4 * gib, 1024.0 * 1024) ==
        "verified 1.0 GiB of 4.0 GiB (25.0 %), 1.0 MiB/s, 52 min left");
  CHECK(progress_text("verified", 0, 100 * gib, 1024.0 * 1024) ==
        "verified 0 B of 100.0 GiB (0 %), 1.0 MiB/s, 29 h left");
}

TEST_CASE("progress without a total, or with one that cannot be, tells bytes and rate", "[look]") {
  const std::string text = "importing 1.0 GiB, 1.0 MiB/s";
  CHECK(progress_text("importing", gib, 0, 1024.0 * 1024) == text);
  CHECK(progress_text("importing", gib, unknown_total, 1024.0 * 1024) == text);
  CHECK(progress_text("importing", gib, gib - 1, 1024.0 * 1024) == text);
  CHECK(progress_text("verified", 0, gib, 0) == "verified 0 B of 1.0 GiB (0 %), 0 B/s");
}

TEST_CASE("text for a page holds no markup and nothing that is no text", "[look]") {
  CHECK(html_text("<a href=\"x\">&'</a>") == "&lt;a href=&quot;x&quot;&gt;&amp;&#39;&lt;/a&gt;");
  CHECK(html_text("gr\u00fcn \xff\x1b[0m\n") == "gr\u00fcn ??[0m?");
  CHECK(html_number(12) == "12");
  CHECK(html_number(-0.01) == "0");
  CHECK(html_number(3.14159) == "3.1");
}

TEST_CASE("a line of a view is never longer than its screen", "[look]") {
  StyledLine line;
  line.add("name \u00e4\u00f6\u00fc ", "1").add("\x1b[2J", "31").right("edge", 30);
  CHECK(line.text(30, false) == "name \u00e4\u00f6\u00fc ?[2J             edge");
  for (std::size_t columns = 0; columns < 40; ++columns) {
    CHECK(width(line.text(columns, false)) == std::min<std::size_t>(columns, 30));
  }
  CHECK(line.text(6, true) == "\x1b[1mname \u00e4\x1b[0m");
}

TEST_CASE("a bar has its length, and shows what is not nothing", "[look]") {
  StyledLine full;
  add_bar(full, 10, 7.0, "");
  CHECK(full.text(80, false) == "[||||||||||]");
  StyledLine parts;
  add_bar(parts, 10, {{1, 'a', ""}, {0, 'b', ""}, {900, 'c', ""}, {1, 'd', ""}}, 1000);
  CHECK(parts.text(80, false) == "[accccccccc]");
  StyledLine few;
  add_bar(few, 10, {{1, 'a', ""}, {1, 'b', ""}}, 1'000'000);
  CHECK(few.text(80, false) == "[ab        ]");
}

TEST_CASE("branches are the trie between its forks, with what follows them", "[look]") {
  // 0 - 1 - 2 - 4        and 5 in a namespace of its own
  //      \- 3
  std::vector<BlockInfo> blocks{block_after(BlockInfo::none), block_after(0, 16),
                                block_after(1, 32),           block_after(1, 32),
                                block_after(2, 48),           block_after(BlockInfo::none)};
  blocks[5].name_space = "tenant";
  blocks[3].pins = 2;
  count_children(blocks);
  const std::vector<Branch> branches = branches_of(blocks, block_bytes, "chat");
  REQUIRE(branches.size() == 7);  // the store, two namespaces, four branches
  CHECK(branches[0].title == "chat");
  CHECK(branches[0].total_bytes == 6 * block_bytes);
  CHECK(branches[0].own_bytes == 0);
  CHECK(branches[0].paths == 3);
  const auto ending = [&](std::uint64_t path) {
    const auto found = std::find_if(branches.begin(), branches.end(),
                                    [&](const Branch& branch) { return branch.path == path; });
    REQUIRE(found != branches.end());
    return *found;
  };
  const Branch trunk = ending(2);
  CHECK(trunk.blocks == 2);
  CHECK(trunk.tokens == 32);
  CHECK(trunk.own_bytes == 2 * block_bytes);
  CHECK(trunk.total_bytes == 5 * block_bytes);
  CHECK(trunk.paths == 2);
  CHECK(trunk.last_used_unix_ns == 1'048);
  CHECK(branches[trunk.parent].title == "no namespace");
  const Branch fork = ending(5);
  CHECK(fork.first_token == 32);
  CHECK(fork.blocks == 2);
  CHECK(branches[fork.parent].path == 2);
  CHECK(ending(4).pins == 2);
  CHECK(branches[ending(6).parent].title == "tenant");
}

TEST_CASE("a plot keeps to its limits, and each piece below the one it goes on from", "[look]") {
  check_layout(branches_of({}, block_bytes, "empty"), {});
  for (const std::uint32_t count : {1U, 50U, 3'000U, 200'000U}) {
    for (const std::uint32_t reach : {1U, 3U, 40U, 100'000U}) {
      const auto branches = branches_of(random_trie(count, reach), block_bytes, "random");
      CHECK(branches.front().total_bytes == count * block_bytes);
      check_layout(branches, {});
      check_layout(branches, {300, 4, 60});
    }
  }
}

TEST_CASE("a hundred thousand equal paths are joined, and none is lost", "[look]") {
  std::vector<BlockInfo> blocks(100'000, block_after(BlockInfo::none));
  count_children(blocks);
  const auto branches = branches_of(blocks, block_bytes, "wide");
  const auto pieces = lay_out(branches, {});
  std::uint64_t paths = 0;
  std::uint64_t bytes = 0;
  for (const Icicle& piece : pieces) {
    if (piece.row != 1) continue;
    paths += piece.paths;
    bytes += piece.bytes;
    CHECK(piece.width >= (paths == 100'000 ? 0.4 : 2.0));  // the last one is what was left
  }
  CHECK(paths == 100'000);
  CHECK(bytes == 100'000 * block_bytes);
}
