#include "unit/archive_support.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// Written with each way of compressing and any number of threads, and read each way.
void round_trip(const Sample& sample) {
  for (const auto compression : {Compression::raw, Compression::lz4, Compression::zstd}) {
    for (const std::uint32_t threads : {1U, 3U}) {
      const auto bytes = bytes_of(sample, compression, threads);
      auto reader = ArchiveReader::open(file_of(bytes));
      INFO((reader ? "" : reader.error().message));
      REQUIRE(reader);
      CHECK(reader->file_bytes() == bytes.size());
      check_by_index(*reader, sample);
      check_all(*reader, sample, threads);
      CHECK(reader->position() == bytes.size());
    }
  }
}

}  // namespace

TEST_CASE("a snapshot with everything in it comes back", "[archive]") {
  round_trip(small_sample());
}

TEST_CASE("a snapshot without any node or session comes back", "[archive]") {
  round_trip(SampleBuilder(geometry_of(1, 8, 8, 16)).sample());
  round_trip(SampleBuilder(geometry_of(1, 8, 8, 16), 0).sample());
}

TEST_CASE("planes without V, and unequal layers, come back", "[archive]") {
  Geometry geometry = geometry_of(3, 1152, 0, 16, "bf16");
  geometry.layers[1] = {10, 300};
  geometry.layers[2] = {0, 7};
  SampleBuilder builder(geometry);
  const auto trunk = builder.chain(no_node, 0, 20, 3, 1);
  builder.new_span();
  builder.chain(trunk, 0, 80, 0, 7);
  round_trip(builder.sample());
}

TEST_CASE("rows longer than a chunk come back, each in a chunk of its own", "[archive]") {
  SampleBuilder builder(geometry_of(1, (1 << 20) + 6, 2, 2));
  builder.chain(no_node, 0, 2, 1, 1);
  round_trip(builder.sample());
}

TEST_CASE("blocks of one token come back", "[archive]") {
  SampleBuilder builder(geometry_of(2, 64, 64, 1, "q8_0"), 2);
  builder.chain(no_node, 0, 300, 0, 1);
  builder.chain(no_node, 1, 300, 0, 1);
  round_trip(builder.sample());
}

TEST_CASE("a span as large as spans can be comes back", "[archive]") {
  SampleBuilder builder(geometry_of(1, 2, 2, 1), 2);
  for (std::int32_t i = 0; i < 5000; ++i) builder.chain(no_node, 0, 1, 0, i);
  REQUIRE(builder.sample().spans.size() == 2);
  REQUIRE(builder.sample().spans[0].nodes.size() == snapshot_span_nodes);
  round_trip(builder.sample());
}

TEST_CASE("a thousand namespaces come back", "[archive]") {
  SampleBuilder builder(geometry_of(1, 2, 0, 4), 1000);
  for (std::uint32_t i = 0; i < 1000; ++i) builder.chain(no_node, i, 1, 1, 5);
  round_trip(builder.sample());
}
