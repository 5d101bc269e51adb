#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/hash.hpp"
#include "catch.hpp"
#include "format/block_header.hpp"
#include "format/control_layout.hpp"
#include "format/segment_layout.hpp"
#include "format/superblock.hpp"

using namespace esker;
using namespace esker::detail;

namespace {

Geometry small_geometry() {
  Geometry geometry;
  geometry.layers = {{64, 32}, {48, 0}, {128, 128}};
  geometry.dtype = "f16";
  geometry.block_tokens = 16;
  return geometry;
}

Superblock small_superblock() {
  Superblock superblock;
  superblock.geometry = small_geometry();
  REQUIRE(superblock.model.set("weights", "abc"));
  superblock.segment_blocks = 8;
  superblock.max_segments = 4;
  superblock.segment_file_bytes = SegmentLayout(superblock.geometry, 8).file_bytes();
  superblock.seats = 5;
  superblock.capacity_bytes = 1 << 20;
  superblock.uuid.fill(7);
  superblock.secret.fill(9);
  return superblock;
}

std::vector<std::byte> both_slots(Superblock superblock) {
  std::vector<std::byte> bytes(superblock_bytes);
  SuperblockSlot slot{};
  for (superblock.sequence = 2; superblock.sequence < 4; ++superblock.sequence) {
    encode_superblock(superblock, slot);
    std::memcpy(bytes.data() + (superblock.sequence & 1) * superblock_slot_bytes, slot.data(),
                slot.size());
  }
  return bytes;
}

}  // namespace

TEST_CASE("a streaming hash does not depend on what its memory held before", "[format]") {
  const std::vector<std::byte> bytes(1000, std::byte{5});
  const std::uint64_t seed = 0x1234'5678'9ABC'DEF0U;
  alignas(StreamingHash) std::array<std::byte, sizeof(StreamingHash)> memory{};
  for (std::size_t at = 0; at < memory.size(); at += 8) {
    auto* first = new (memory.data()) StreamingHash(seed);
    std::destroy_at(first);
    memory[at] ^= std::byte{0xFF};  // an earlier state, partly overwritten since
    auto* again = new (memory.data()) StreamingHash(seed);
    again->update(bytes);
    CHECK(again->digest() == xxh3(bytes, seed));
    std::destroy_at(again);
  }
}

TEST_CASE("a superblock reads back as it was written", "[format]") {
  const Superblock written = small_superblock();
  const auto read = decode_superblock(both_slots(written), "esker");
  REQUIRE(read);
  CHECK(read->geometry == written.geometry);
  CHECK(read->model == written.model);
  CHECK(read->seats == 5);
  CHECK(read->uuid == written.uuid);
  CHECK(read->sequence == 3);
}

TEST_CASE("one damaged superblock slot is survived, whichever bit is flipped", "[format]") {
  const std::vector<std::byte> good = both_slots(small_superblock());
  for (std::size_t bit = 0; bit < 400 * 8; ++bit) {
    auto bytes = good;
    bytes[superblock_slot_bytes + bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto read = decode_superblock(bytes, "esker");
    REQUIRE(read);
    REQUIRE(read->sequence == 2);
  }
}

TEST_CASE("two damaged superblock slots are refused by name", "[format]") {
  auto bytes = both_slots(small_superblock());
  bytes[300] ^= std::byte{1};
  bytes[superblock_slot_bytes + 300] ^= std::byte{1};
  const auto read = decode_superblock(bytes, "S/esker");
  REQUIRE_FALSE(read);
  CHECK(read.error().code == Errc::corrupt);
  CHECK(read.error().message.find("S/esker: checksum is") != std::string::npos);
}

TEST_CASE("a newer format in one superblock slot is not hidden by an old one", "[format]") {
  auto bytes = both_slots(small_superblock());
  std::byte* slot = bytes.data() + superblock_slot_bytes;
  const std::uint32_t newer = 99;
  std::memcpy(slot + offsetof(SuperblockHeader, read_version), &newer, sizeof newer);
  const std::uint64_t sum = xxh3(std::span(slot, superblock_checksum_offset));
  std::memcpy(slot + superblock_checksum_offset, &sum, sizeof sum);
  const auto read = decode_superblock(bytes, "esker");
  REQUIRE_FALSE(read);
  CHECK(read.error().code == Errc::incompatible);
  CHECK(read.error().message.find("read_version is 99") != std::string::npos);
}

TEST_CASE("the regions of a segment are ascending and do not overlap", "[format]") {
  const SegmentLayout layout(small_geometry(), 8);
  REQUIRE(layout.planes().size() == 5);
  std::uint64_t end = layout.header_offset(8);
  for (const PlaneRegion& region : layout.planes()) {
    CHECK(region.offset >= end);
    CHECK(region.offset % 4096 == 0);
    CHECK(region.bytes == std::uint64_t{8} * 16 * region.row_bytes);
    end = region.offset + region.bytes;
  }
  CHECK(layout.file_bytes() >= end);
  CHECK(layout.plane_index(1, Plane::value) == -1);
  CHECK(layout.plane_index(2, Plane::key) == 3);
  CHECK(layout.plane_index(3, Plane::key) == -1);
}

TEST_CASE("a segment header with any flipped bit is refused", "[format]") {
  const SegmentLayout layout(small_geometry(), 8);
  const SegmentIdentity identity{{1, 2, 3}, geometry_digest(small_geometry())};
  const auto good = encode_segment_header(layout, identity, 3, 12345);
  REQUIRE(check_segment_header(good, layout, identity, 3, "00003"));
  REQUIRE_FALSE(check_segment_header(good, layout, identity, 2, "00002"));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    REQUIRE_FALSE(check_segment_header(bytes, layout, identity, 3, "00003"));
  }
}

TEST_CASE("a block checksum belongs to one store, block and generation", "[format]") {
  const std::array<std::uint8_t, 16> uuid{1};
  const std::vector<std::byte> header(sizeof(BlockHeader) + 64);
  const auto sum = block_checksum(header, block_seed(uuid, 5, 6));
  CHECK(sum != 0);
  CHECK(sum == block_checksum(header, block_seed(uuid, 5, 6)));
  CHECK(sum != block_checksum(header, block_seed(uuid, 6, 6)));
  CHECK(sum != block_checksum(header, block_seed(uuid, 5, 7)));
  CHECK(sum != block_checksum(header, block_seed({2}, 5, 6)));
}

TEST_CASE("an all-zero block header is never well formed", "[format]") {
  CHECK_FALSE(well_formed(BlockHeader{}, 16, 832));
}

TEST_CASE("the areas of the control file do not overlap", "[format]") {
  for (const std::uint32_t blocks : {2U, 63U, 64U, 1000U, 100'000U}) {
    const ControlLayout layout(blocks, 64, 128);
    CHECK(layout.slots_offset >= sizeof(ControlHeader));
    CHECK(layout.words_offset >= layout.slots_offset + 128 * sizeof(SeatRecord));
    CHECK(layout.checks_offset >= layout.words_offset + 8 * std::uint64_t{blocks});
    CHECK(layout.touches_offset >= layout.checks_offset + 8 * std::uint64_t{blocks});
    CHECK(layout.rows_offset >= layout.touches_offset + 8 * std::uint64_t{blocks});
    CHECK(layout.row_bytes * 8 >= blocks);
    CHECK(layout.hints_offset >= layout.rows_offset + std::uint64_t{128} * layout.row_bytes);
    CHECK(layout.events_offset >= layout.hints_offset + std::uint64_t{layout.buckets} * 128);
    CHECK(layout.file_bytes >= layout.events_offset + event_ring_entries * sizeof(EventRecord));
  }
}
