#include <set>

#include "catch.hpp"
#include "index/chain_hash.hpp"
#include "index/hints.hpp"

using namespace esker::detail;

namespace {

constexpr std::uint32_t block_count = 4096;

Control private_control() {
  ControlToken token;
  token.layout = ControlLayout(block_count, 64, 4);
  auto control = Control::build_private(token);
  REQUIRE(control);
  return std::move(*control);
}

void make_ready(const Control& control, std::uint32_t block, std::uint32_t generation) {
  control.word(block).store(BlockWord{generation, BlockState::ready, 0}.pack());
}

HintSet whole(std::uint64_t hash) {
  HintSet hints;
  hints.add(hash, HintKind::whole);
  return hints;
}

HintSet with_part(std::uint64_t hash, std::uint64_t part_hash) {
  HintSet hints = whole(hash);
  hints.add(part_hash, HintKind::part);
  return hints;
}

std::uint32_t hints_in_bucket(const Control& control, std::uint64_t hash) {
  std::uint32_t count = 0;
  for (const std::uint64_t hint : control.bucket(hash)) count += hint != 0;
  return count;
}

}  // namespace

TEST_CASE("inserting a hint twice leaves one", "[index]") {
  const Control control = private_control();
  make_ready(control, 7, 3);
  insert_hints(control, whole(0xABCDEF1234567890), 7, 3);
  insert_hints(control, whole(0xABCDEF1234567890), 7, 3);
  CHECK(hints_in_bucket(control, 0xABCDEF1234567890) == 1);
  CHECK(has_hint(control, {0xABCDEF1234567890, HintKind::whole}, 7, 3));
}

TEST_CASE("a hint of an earlier life is not taken for ours", "[index]") {
  const Control control = private_control();
  constexpr std::uint64_t hash = 0x1122334455667788;
  make_ready(control, 7, 3);
  insert_hints(control, whole(hash), 7, 3);
  make_ready(control, 7, 4);
  insert_hints(control, whole(hash), 7, 4);
  CHECK(has_hint(control, {hash, HintKind::whole}, 7, 4));
  // The dead hint was overwritten, and removing it again must not take the new one.
  remove_hints(control, whole(hash), 7, 3);
  CHECK(has_hint(control, {hash, HintKind::whole}, 7, 4));
}

TEST_CASE("removing hints takes exactly those of the block and generation", "[index]") {
  const Control control = private_control();
  constexpr std::uint64_t hash = 0x99;
  for (std::uint32_t block = 0; block < 5; ++block) {
    make_ready(control, block, 1);
    insert_hints(control, whole(hash), block, 1);
  }
  remove_hints(control, whole(hash), 2, 1);
  CHECK(hints_in_bucket(control, hash) == 4);
  CHECK_FALSE(has_hint(control, {hash, HintKind::whole}, 2, 1));
}

TEST_CASE("a full bucket gives up a part before the only way to a block", "[index]") {
  const Control control = private_control();
  constexpr std::uint64_t base = 0x5500000000000000;
  for (std::uint32_t block = 0; block < 15; ++block) {
    make_ready(control, block, 1);
    insert_hints(control, whole(base + (std::uint64_t{block} << 40)), block, 1);
  }
  make_ready(control, 15, 1);
  insert_hints(control, with_part(0x80000000, base), 15, 1);
  REQUIRE(hints_in_bucket(control, base) == hints_per_bucket);
  make_ready(control, 16, 1);
  CHECK(insert_hints(control, whole(base + (std::uint64_t{77} << 40)), 16, 1) == 1);
  for (std::uint32_t block = 0; block < 15; ++block) {
    CHECK(has_hint(control, {base + (std::uint64_t{block} << 40), HintKind::whole}, block, 1));
  }
}

TEST_CASE("at most two blocks leave the same part", "[index]") {
  const Control control = private_control();
  constexpr std::uint64_t part = 0x7700000000000000;
  for (std::uint32_t block = 0; block < 10; ++block) {
    make_ready(control, block, 1);
    insert_hints(control, with_part(std::uint64_t{block} << 20, part), block, 1);
  }
  std::uint32_t parts = 0;
  for (const std::uint64_t hint : control.bucket(part))
    parts += Hint::names(hint, part, HintKind::part);
  CHECK(parts == 2);
}

TEST_CASE("dead hints are overwritten, so a bucket never silts up", "[index]") {
  const Control control = private_control();
  constexpr std::uint64_t base = 0x4400000000000000;
  std::uint32_t displaced = 0;
  for (std::uint32_t round = 0; round < 1000; ++round) {
    const std::uint32_t block = round % 8;
    make_ready(control, block, round + 1);
    displaced +=
        insert_hints(control, whole(base + (std::uint64_t{round} << 41)), block, round + 1);
  }
  CHECK(displaced == 0);
}

TEST_CASE("a hash depends on the namespace and on every token before it", "[index]") {
  const std::array<std::uint8_t, 16> secret{1, 2, 3};
  const std::array<std::uint8_t, 16> other{1, 2, 4};
  const std::vector<std::int32_t> tokens{1, 2, 3, 4};
  const auto label = std::as_bytes(std::span(tokens));
  const auto root = chain::root(secret, "a");
  CHECK(root != chain::root(secret, "b"));
  CHECK(root != chain::root(other, "a"));
  CHECK(chain::extend(root, label) != chain::extend(root, label.first(12)));
  CHECK(chain::extend(root, label) == chain::extend(root, label));
  CHECK(chain::key(root, "k") != chain::extend(root, std::as_bytes(std::span("k", 1))));
}
