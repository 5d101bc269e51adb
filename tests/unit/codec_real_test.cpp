// Ratios on rows of a real model. 96 tokens are the hard case: what is learnt costs the most there.

#include "catch.hpp"
#include "codec_support.hpp"
#include "llama/seq_reader.hpp"

using namespace esker;
using namespace esker::detail;
using namespace esker::test;

namespace {

struct Planes {
  RowShape shape;
  std::vector<Bytes> chunks;
};

Planes planes_of(const char* name, Plane plane) {
  const auto file = cli::llama::SeqFile::open(std::string(ESKER_TEST_DATA_DIR) + "/slots/" + name);
  REQUIRE(file);
  const Geometry geometry = file->geometry(16);
  Planes planes;
  const auto tokens = static_cast<std::uint32_t>(file->tokens().size());
  for (std::uint32_t layer = 0; layer < geometry.layers.size(); ++layer) {
    const std::uint32_t row_bytes = geometry.row_bytes(layer, plane);
    planes.shape = RowShape::of(geometry.dtype, plane, row_bytes);
    planes.chunks.emplace_back(std::size_t{tokens} * row_bytes);
    REQUIRE(file->rows(layer, plane, {0, tokens}, planes.chunks.back()));
  }
  return planes;
}

Planes rounded(Planes planes) {
  planes.shape = RowShape::of("bf16", planes.shape.plane, planes.shape.row_bytes);
  for (Bytes& chunk : planes.chunks) {
    for (std::size_t i = 0; i < chunk.size(); i += 2) {
      std::uint16_t word = 0;
      std::memcpy(&word, &chunk[i], sizeof word);
      word = BrainBits::from_float(HalfBits::to_float(word));
      std::memcpy(&chunk[i], &word, sizeof word);
    }
  }
  return planes;
}

double ratio(const Planes& planes, const CodecChoice& choice) {
  CodecMemory memory;
  double rows = 0;
  double stored_bytes = 0;
  for (const Bytes& chunk : planes.chunks) {
    Bytes stored;
    const auto coding = encode_chunk(chunk, planes.shape, choice, memory, stored);
    REQUIRE(coding);
    Bytes back(chunk.size());
    REQUIRE(decode_chunk(*coding, planes.shape, stored, back, memory, "chunk"));
    if (choice.lossy == Lossy::none && back != chunk) FAIL("rows came back changed");
    rows += static_cast<double>(chunk.size());
    stored_bytes += static_cast<double>(stored.size());
  }
  return rows / stored_bytes;
}

}  // namespace

TEST_CASE("real f16 and bf16 rows shrink by what was promised", "[codec]") {
  for (const Plane plane : {Plane::key, Plane::value}) {
    const Planes half = planes_of("smollm2-f16.slot", plane);
    CHECK(ratio(half, {Compression::lz4, 0, Lossy::none}) >= 1.11);
    CHECK(ratio(half, {Compression::zstd, 0, Lossy::none}) >= 1.17);
    const Planes brain = rounded(half);
    CHECK(ratio(brain, {Compression::lz4, 0, Lossy::none}) >= 1.38);
    CHECK(ratio(brain, {Compression::zstd, 0, Lossy::none}) >= 1.45);
  }
}

TEST_CASE("q8 of real rows is less than half of f16, q4 less than a third", "[codec]") {
  for (const Plane plane : {Plane::key, Plane::value}) {
    const Planes half = planes_of("smollm2-f16.slot", plane);
    CHECK(ratio(half, {Compression::lz4, 0, Lossy::q8}) > 2);
    CHECK(ratio(half, {Compression::zstd, 0, Lossy::q8}) > 2);
    CHECK(ratio(half, {Compression::lz4, 0, Lossy::q4}) > 3);
  }
}

TEST_CASE("rows that a model has quantised itself come back bit for bit", "[codec]") {
  for (const Plane plane : {Plane::key, Plane::value}) {
    const Planes planes = planes_of("smollm2-q8-split.slot", plane);
    CHECK(planes.shape.element_bytes == 34);
    CHECK(ratio(planes, {Compression::zstd, 0, Lossy::none}) > 1);
  }
}
