#include "codec/codec.hpp"

#include <random>

#include "catch.hpp"

using namespace esker;
using namespace esker::detail;

TEST_CASE("random floats come back bit for bit from every method", "[codec]") {
  std::mt19937_64 random(1);
  const RowShape shape = RowShape::of("f16", Plane::key, 384);
  std::vector<std::byte> rows(384 * 100);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<std::byte>(i % 2 == 0 ? random() : 0x38 + random() % 8);
  }
  for (const auto method : {Compression::raw, Compression::lz4, Compression::zstd}) {
    CodecMemory memory;
    std::vector<std::byte> stored;
    const auto coding = encode_chunk(rows, shape, {method, 0, Lossy::none}, memory, stored);
    REQUIRE(coding);
    CHECK(stored.size() <= rows.size());
    std::vector<std::byte> back(rows.size());
    REQUIRE(decode_chunk(*coding, shape, stored, back, memory, "chunk"));
    CHECK(back == rows);
  }
}
