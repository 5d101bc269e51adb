// What is read from a file may be anything: refused, or rows, but never a step outside.

#include "catch.hpp"
#include "codec_support.hpp"

using namespace esker;
using namespace esker::detail;
using namespace esker::test;

namespace {

constexpr std::byte guard{0x5C};
constexpr std::size_t guard_bytes = 64;

/// Decodes between two guards, which must stay; and memory must stay small.
bool decodes(const ChunkCoding& coding, const RowShape& shape, const Bytes& stored,
             std::size_t rows_bytes) {
  CodecMemory memory;
  Bytes room(rows_bytes + 2 * guard_bytes, guard);
  const auto good = decode_chunk(
      coding, shape, stored, std::span(room).subspan(guard_bytes, rows_bytes), memory, "chunk 7");
  for (std::size_t i = 0; i < guard_bytes; ++i) {
    if (room[i] != guard || room[room.size() - 1 - i] != guard) FAIL("wrote outside");
  }
  const std::size_t used =
      memory.filtered.capacity() + memory.packed.capacity() + memory.work.capacity();
  if (used > 4 * rows_bytes + 8192) FAIL("allocated " << used << " for " << rows_bytes);
  if (good) return true;
  if (good.error().code != Errc::corrupt && good.error().code != Errc::incompatible) {
    FAIL(good.error().message);
  }
  CHECK_THAT(good.error().message, contains("chunk 7"));
  return false;
}

const std::vector<RowShape> shapes{
    RowShape::of("f16", Plane::key, 384),  RowShape::of("bf16", Plane::value, 130),
    RowShape::of("f32", Plane::value, 36), RowShape::of("q8_0", Plane::key, 68),
    RowShape::of("i8", Plane::key, 1),     RowShape::of("bf16", Plane::key, 2 * 576)};

std::vector<ChunkCoding> all_codings() {
  std::vector<ChunkCoding> codings;
  for (std::uint8_t compression = 0; compression < 4; ++compression) {
    for (std::uint8_t filter = 0; filter < filter_count + 1; ++filter) {
      for (std::uint8_t lossy = 0; lossy < 4; ++lossy) {
        codings.push_back({compression, filter, lossy});
      }
    }
  }
  return codings;
}

}  // namespace

TEST_CASE("random bytes under any coding are refused or are rows", "[codec][hostile]") {
  std::mt19937_64 random(3);
  std::size_t refused = 0;
  for (const RowShape& shape : shapes) {
    for (const ChunkCoding& coding : all_codings()) {
      for (int i = 0; i < 12; ++i) {
        const std::size_t bytes = (1 + random() % 40) * shape.row_bytes;
        const Bytes stored = garbage(random() % (2 * bytes), random());
        refused += decodes(coding, shape, stored, bytes) ? 0 : 1;
      }
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("damaged chunks are refused or are rows", "[codec][hostile]") {
  std::mt19937_64 random(4);
  std::size_t refused = 0;
  for (const RowShape& shape : shapes) {
    const Bytes rows = rows_of(shape, 40, Content::bell, random());
    for (const Filter filter : filters_for(shape)) {
      for (const Compression compression : all_compressions) {
        const Coded coded = code_with(filter, compression, rows, shape);
        REQUIRE(decodes(coded.coding, shape, coded.stored, rows.size()));
        for (int i = 0; i < 150 && !coded.stored.empty(); ++i) {
          Bytes stored = coded.stored;
          for (std::size_t flips = 1 + random() % 3; flips > 0; --flips) {
            stored[random() % stored.size()] ^= static_cast<std::byte>(1U << (random() % 8));
          }
          if (i % 3 == 0) stored.resize(random() % (stored.size() + 4));
          refused += decodes(coded.coding, shape, stored, rows.size()) ? 0 : 1;
        }
      }
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("a chunk that is a byte short or long is refused", "[codec][hostile]") {
  for (const RowShape& shape : shapes) {
    const Bytes rows = rows_of(shape, 40, Content::bell, 9);
    for (const Filter filter : filters_for(shape)) {
      for (const Compression compression : all_compressions) {
        const Coded coded = code_with(filter, compression, rows, shape);
        Bytes longer = coded.stored;
        longer.push_back(std::byte{0});
        CHECK_FALSE(decodes(coded.coding, shape, longer, rows.size()));
        Bytes shorter = coded.stored;
        shorter.pop_back();
        CHECK_FALSE(decodes(coded.coding, shape, shorter, rows.size()));
        CHECK_FALSE(decodes(coded.coding, shape, coded.stored, rows.size() + shape.row_bytes));
        CHECK_FALSE(decodes(coded.coding, shape, {}, rows.size()));
      }
    }
  }
}

TEST_CASE("a bomb that claims more than the rows is refused without room for it",
          "[codec][hostile]") {
  const RowShape shape = RowShape::of("f16", Plane::key, 384);
  const Bytes huge(64U << 20);
  for (const Compression compression : {Compression::lz4, Compression::zstd}) {
    Bytes stored(compress_bound(huge.size()));
    const std::size_t end = huge.size();
    stored.resize(compress({compression, 0, false}, huge, {&end, 1}, stored));
    CHECK(stored.size() < huge.size() / 100);
    for (std::uint8_t filter = 0; filter < filter_count; ++filter) {
      CHECK_FALSE(
          decodes({static_cast<std::uint8_t>(compression), filter, 0}, shape, stored, 3840));
    }
  }
}

TEST_CASE("numbers that this version does not know are refused by name", "[codec][hostile]") {
  const RowShape shape = RowShape::of("f16", Plane::key, 384);
  CHECK(known_coding({}, shape));
  CHECK_FALSE(known_coding({3, 0, 0}, shape));
  CHECK_FALSE(known_coding({0, filter_count, 0}, shape));
  CHECK_FALSE(known_coding({0, 0, 3}, shape));
  CHECK_FALSE(known_coding({0, 1, 1}, shape));
  CodecMemory memory;
  Bytes rows(384);
  const auto refused = decode_chunk({0, 200, 0}, shape, rows, rows, memory, "chunk");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::incompatible);
  CHECK_THAT(refused.error().message, contains("filter 200"));
}
