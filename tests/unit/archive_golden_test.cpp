#include <cmath>
#include <fstream>
#include <iterator>

#include "support/process.hpp"
#include "unit/archive_support.hpp"

using namespace esker;
using namespace esker::test;

/// Snapshots written by earlier versions, kept for ever: what they hold must always be read.
/// tests/golden/snapshot/README.md says how they were made.

namespace {

struct Golden {
  const char* name;
  CodecChoice codec;
};

constexpr std::array<Golden, 5> goldens{{
    {"raw-1.esnap", {Compression::raw, 0, Lossy::none}},
    {"lz4-1.esnap", {Compression::lz4, 0, Lossy::none}},
    {"zstd-1.esnap", {Compression::zstd, 0, Lossy::none}},
    {"q8-1.esnap", {Compression::zstd, 0, Lossy::q8}},
    {"q4-1.esnap", {Compression::zstd, 0, Lossy::q4}},
}};

Sample golden_sample(Lossy lossy) {
  SampleBuilder builder(geometry_of(2, 128, 64, 16), 3);
  const std::uint32_t trunk = builder.chain(no_node, 0, 2, 5, 100);
  builder.chain(no_node, 1, 1, 0, 100);
  builder.key(2, "page-1");
  builder.new_span();
  builder.chain(trunk, 0, 1, 9, 500);
  builder.session("chat", {100, 103, 106, 7}, 2);
  builder.sample().head.lossy = lossy;
  if (lossy != Lossy::none) {
    need(builder.sample().head.model.set("lossy", lossy == Lossy::q8 ? "q8" : "q4"));
  }
  return std::move(builder.sample());
}

/// Makes the files that are kept. Argument: the directory.
int make_golden_snapshots(const Arguments& arguments) {
  for (const Golden& golden : goldens) {
    auto sink = FileSink::create(arguments[0] + "/" + golden.name, false);
    if (!sink) return 1;
    write_sample(golden_sample(golden.codec.lossy), **sink, {golden.codec, 1});
    if (!(*sink)->commit()) return 1;
  }
  return 0;
}

const RoleName golden_role("make_golden_snapshots", &make_golden_snapshots);

std::vector<std::byte> golden_bytes(const std::string& name) {
  std::ifstream in(std::string(ESKER_TEST_DATA_DIR) + "/snapshot/" + name, std::ios::binary);
  REQUIRE(in);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// The f16 at `at`, of those that are neither zero, subnormal nor infinite.
double half(std::span<const std::byte> row, std::size_t at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, row.data() + at, sizeof bits);
  const double mantissa = 1.0 + (bits & 0x3FF) / 1024.0;
  const double value = std::ldexp(mantissa, ((bits >> 10) & 0x1F) - 15);
  return (bits & 0x8000) != 0 ? -value : value;
}

/// Decoded rows are those that the file's sums name; here, that they are near the exact ones.
void check_near(ArchiveReader& reader, const Sample& sample, double most) {
  std::size_t spans = 0;
  double worst = 0;
  const RowTaker take = [&](std::size_t plane, std::uint32_t first,
                            std::span<const std::byte> rows) -> Result<void> {
    std::vector<std::byte> exact(rows.size());
    const std::size_t row_bytes = reader.planes()[plane].row_bytes;
    fill_rows(sample.spans[spans], plane, first, row_bytes, exact);
    for (std::size_t at = 0; at < rows.size(); at += 2) {
      worst = std::max(worst, std::abs(half(rows, at) - half(exact, at)));
    }
    return {};
  };
  for (; spans < sample.spans.size(); ++spans) {
    auto part = reader.next();
    REQUIRE(part);
    REQUIRE(std::holds_alternative<ArchiveSpan>(*part));
    REQUIRE(reader.rows({}, take, 1));
  }
  CHECK(worst > 0);
  CHECK(worst < most);
}

}  // namespace

TEST_CASE("snapshots that version 1 wrote are read", "[archive]") {
  for (const Golden& golden : goldens) {
    INFO(golden.name);
    const Sample sample = golden_sample(golden.codec.lossy);
    const auto bytes = golden_bytes(golden.name);
    auto reader = ArchiveReader::open(file_of(bytes));
    INFO((reader ? "" : reader.error().message));
    REQUIRE(reader);
    CHECK(reader->head().read_version == 1);
    CHECK(reader->head().lossy == golden.codec.lossy);
    if (golden.codec.lossy == Lossy::none) {
      check_by_index(*reader, sample);
      check_all(*reader, sample, 1);
    } else {
      check_near(*reader, sample, golden.codec.lossy == Lossy::q8 ? 0.01 : 0.15);
    }
    auto again = ArchiveReader::open(file_of(bytes));
    REQUIRE(again);
    const auto report = check_archive(*again, {});
    REQUIRE(report);
    CHECK(report->damage.empty());
    CHECK(report->blocks == 7);
    CHECK(report->sessions == 1);
  }
}
