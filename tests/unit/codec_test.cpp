// Whatever the rows, the way they are coded and the shape: decoding gives them back.

#include <xxhash.h>

#include "catch.hpp"
#include "codec_support.hpp"

using namespace esker;
using namespace esker::detail;
using namespace esker::test;

namespace {

struct DType {
  std::string name;
  std::uint32_t bytes;
};

const std::vector<DType> dtypes{{"f32", 4},   {"f16", 2}, {"bf16", 2},    {"q8_0", 34},
                                {"q4_0", 18}, {"i8", 1},  {"f8_e4m3", 1}, {"nobody's", 3}};

/// Widths of rows in elements: odd ones, and both sides of where packing changes its groups.
const std::vector<std::uint32_t> widths{1, 2, 7, 8, 63, 64, 65, 72, 192};

/// All rows that the tests try, in every dtype, width and number.
template <class Check>
void for_all_rows(Check check) {
  std::uint64_t seed = 0;
  for (const DType& dtype : dtypes) {
    for (const std::uint32_t width : widths) {
      const auto plane = seed % 2 == 0 ? Plane::key : Plane::value;
      const RowShape shape = RowShape::of(dtype.name, plane, width * dtype.bytes);
      for (const std::size_t count : {1U, 2U, 9U, 31U}) {
        for (const Content content :
             {Content::garbage, Content::bell, Content::zeros, Content::repeated}) {
          check(shape, rows_of(shape, count, content, ++seed));
        }
      }
    }
  }
}

Bytes decoded(const ChunkCoding& coding, const RowShape& shape, const Bytes& stored,
              std::size_t bytes) {
  CodecMemory memory;
  Bytes rows(bytes, std::byte{0xA5});
  const auto good = decode_chunk(coding, shape, stored, rows, memory, "chunk");
  if (!good) FAIL(good.error().message);
  return rows;
}

std::uint64_t hash_of(const Bytes& bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace

TEST_CASE("every filter under every compression gives the rows back bit for bit", "[codec]") {
  std::size_t tried = 0;
  for_all_rows([&](const RowShape& shape, const Bytes& rows) {
    for (const Filter filter : filters_for(shape)) {
      for (const Compression compression : all_compressions) {
        const Coded coded = code_with(filter, compression, rows, shape);
        if (decoded(coded.coding, shape, coded.stored, rows.size()) != rows) {
          FAIL("filter " << int(coded.coding.filter) << " compression "
                         << int(coded.coding.compression) << " element " << shape.element_bytes
                         << " row " << shape.row_bytes << " rows " << rows.size());
        }
        ++tried;
      }
    }
  });
  CHECK(tried > 10'000);
}

TEST_CASE("what the encoder chooses is never longer than the rows and gives them back", "[codec]") {
  CodecMemory memory;
  Bytes stored;
  for_all_rows([&](const RowShape& shape, const Bytes& rows) {
    for (const Compression compression : all_compressions) {
      const auto coding = encode_chunk(rows, shape, {compression, 0, Lossy::none}, memory, stored);
      REQUIRE(coding);
      if (stored.size() > rows.size()) FAIL("longer than the rows");
      if (decoded(*coding, shape, stored, rows.size()) != rows) FAIL("changed");
    }
  });
}

TEST_CASE("all levels of zstd give the rows back, and a high one is no worse than a low one",
          "[codec]") {
  const RowShape shape = RowShape::of("bf16", Plane::key, 384);
  const Bytes rows = rows_of(shape, 300, Content::bell, 5);
  CodecMemory memory;
  std::vector<std::size_t> lengths;
  for (const int level : {1, 3, 9, 13, 19}) {
    Bytes stored;
    const auto coding =
        encode_chunk(rows, shape, {Compression::zstd, level, Lossy::none}, memory, stored);
    REQUIRE(coding);
    CHECK(decoded(*coding, shape, stored, rows.size()) == rows);
    lengths.push_back(stored.size());
  }
  CHECK(lengths.back() <= lengths.front());
}

TEST_CASE("rows that begin at an odd address are coded and decoded like others", "[codec]") {
  const RowShape shape = RowShape::of("f16", Plane::value, 256);
  const Bytes rows = rows_of(shape, 20, Content::bell, 3);
  Bytes shifted(rows.size() + 1);
  std::copy(rows.begin(), rows.end(), shifted.begin() + 1);
  CodecMemory memory;
  for (const Compression compression : all_compressions) {
    Bytes stored;
    const auto coding = encode_chunk(std::span(shifted).subspan(1), shape,
                                     {compression, 0, Lossy::none}, memory, stored);
    REQUIRE(coding);
    Bytes out(rows.size() + 1);
    REQUIRE(decode_chunk(*coding, shape, stored, std::span(out).subspan(1), memory, "chunk"));
    CHECK(std::equal(rows.begin(), rows.end(), out.begin() + 1));
  }
}

TEST_CASE("the filter is chosen by the rows", "[codec]") {
  CodecMemory memory;
  Bytes stored;
  const auto chosen = [&](const RowShape& shape, const Bytes& rows, Compression compression) {
    const auto coding = encode_chunk(rows, shape, {compression, 0, Lossy::none}, memory, stored);
    REQUIRE(coding);
    return static_cast<Filter>(coding->filter);
  };
  const RowShape half = RowShape::of("f16", Plane::key, 384);
  const Bytes bells = rows_of(half, 200, Content::bell, 1);
  CHECK(chosen(half, bells, Compression::lz4) == Filter::packed_3);
  CHECK(chosen(half, bells, Compression::zstd) == Filter::centred_planes);
  CHECK(chosen(half, garbage(384 * 200, 2), Compression::lz4) == Filter::none);

  // A random walk along the tokens: only the difference to the token before is small.
  const RowShape bytes = RowShape::of("i8", Plane::key, 500);
  Bytes walk = garbage(500, 4);
  std::mt19937_64 random(8);
  for (std::size_t i = 500; i < 500 * 300; ++i) {
    walk.push_back(walk[i - 500] ^ static_cast<std::byte>(random() % 16 == 0 ? 1 : 0));
  }
  CHECK(chosen(bytes, walk, Compression::zstd) == Filter::previous_planes);
  CHECK(stored.size() * 4 < walk.size());
}

TEST_CASE("elements that do not fill a row are coded as bytes", "[codec]") {
  const RowShape shape = RowShape::of("f32", Plane::key, 10);
  CHECK(shape.element_bytes == 1);
  CHECK(shape.exponent_bits == 0);
  CHECK_FALSE(known_coding({0, static_cast<std::uint8_t>(Filter::packed_3), 0}, shape));
  // Also when somebody makes such a shape by hand.
  RowShape made = RowShape::of("f32", Plane::key, 12);
  made.row_bytes = 10;
  const Bytes rows = rows_of(shape, 50, Content::repeated, 7);
  CodecMemory memory;
  Bytes stored;
  const auto coding = encode_chunk(rows, made, {}, memory, stored);
  REQUIRE(coding);
  CHECK(decoded(*coding, made, stored, rows.size()) == rows);
}

TEST_CASE("rows that are no multiple of a row are refused, and no rows at all are nothing",
          "[codec]") {
  const RowShape shape = RowShape::of("f16", Plane::key, 384);
  CodecMemory memory;
  Bytes stored;
  const auto odd = encode_chunk(Bytes(385), shape, {}, memory, stored);
  REQUIRE_FALSE(odd);
  CHECK(odd.error().code == Errc::invalid);
  const auto none = encode_chunk({}, shape, {}, memory, stored);
  REQUIRE(none);
  CHECK(stored.empty());
  CHECK(decode_chunk(*none, shape, {}, {}, memory, "chunk"));
}

TEST_CASE("stored bytes mean what they meant in version 1", "[codec]") {
  // Any bytes are the planes of some rows, so bytes that never change must give the same rows.
  const RowShape half = RowShape::of("f16", Plane::key, 2 * 192);
  const RowShape brain = RowShape::of("bf16", Plane::key, 2 * 192);
  const auto rows_from = [](Filter filter, const RowShape& shape, Bytes stored) {
    return hash_of(decoded({0, static_cast<std::uint8_t>(filter), 0}, shape, stored, 10 * 384));
  };
  const Bytes bytes = garbage(11 * 384, 99);
  const Bytes planes(bytes.begin(), bytes.begin() + 10 * 384);
  CHECK(rows_from(Filter::none, half, planes) == hash_of(planes));
  CHECK(rows_from(Filter::planes, half, planes) == 0xC568C80E2009DAEF);
  CHECK(rows_from(Filter::channel_planes, half, planes) == 0x87D84B763AB00282);
  CHECK(rows_from(Filter::previous_planes, half, planes) == 0xFC08A95365A46DA2);
  CHECK(rows_from(Filter::centred_planes, half, bytes) == 0x961BB8F280D66392);

  // Without the lowest bit of any number there are no escapes; two are put in by hand.
  Bytes packed(bytes.begin(),
               bytes.begin() + static_cast<std::ptrdiff_t>(packed_fixed_bytes(brain, 10 * 384, 3)));
  for (std::size_t i = 192; i < 192 + 10 * 72; ++i) packed[i] &= std::byte{0xAA};
  packed[192] |= std::byte{0x03};
  packed[192 + 48] |= std::byte{0x01};
  packed.insert(packed.end(), {std::byte{17}});
  CHECK(rows_from(Filter::packed_3, brain, packed) == 0x20E6ABAA861A72FB);
  packed.assign(bytes.begin(),
                bytes.begin() + static_cast<std::ptrdiff_t>(packed_fixed_bytes(half, 10 * 384, 4)));
  for (std::size_t i = 192; i < 192 + 10 * 96; ++i) packed[i] &= std::byte{0x77};
  packed[200] |= std::byte{0x0F};
  packed[250] |= std::byte{0xF0};
  packed.insert(packed.end(), {std::byte{3}, std::byte{30}});
  CHECK(rows_from(Filter::packed_4, half, packed) == 0x1F1CD34E86D521D5);
}
