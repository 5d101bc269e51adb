#include <set>

#include "unit/archive_forge.hpp"
#include "unit/archive_support.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// Reads all, front to back, and tells what stopped it; "" when nothing did.
Error read_through(std::span<const std::byte> bytes, std::uint32_t threads = 1) {
  auto reader = ArchiveReader::open(file_of(bytes));
  if (!reader) return reader.error();
  const RowTaker ignore = [](std::size_t, std::uint32_t, std::span<const std::byte>) {
    return Result<void>();
  };
  for (;;) {
    auto part = reader->next();
    if (!part) {
      auto again = reader->next();
      REQUIRE(!again);
      CHECK(again.error().message == part.error().message);
      return part.error();
    }
    if (std::holds_alternative<ArchiveEnd>(*part)) return {};
    if (!std::holds_alternative<ArchiveSpan>(*part)) continue;
    if (auto done = reader->rows({}, ignore, threads); !done) return done.error();
  }
}

/// The same by the index.
Error read_by_index(std::span<const std::byte> bytes) {
  auto reader = ArchiveReader::open(file_of(bytes));
  if (!reader) return reader.error();
  auto index = reader->index();
  if (!index) return index.error();
  CodecMemory memory;
  for (const SpanPlace& place : index->spans) {
    auto span = reader->span_at(place);
    if (!span) return span.error();
    for (const ChunkPlace& chunk : place.chunks) {
      std::vector<std::byte> rows(std::size_t{chunk.rows} *
                                  reader->planes()[chunk.plane].row_bytes);
      if (auto done = reader->chunk_at(place, chunk, rows, memory); !done) return done.error();
    }
  }
  for (const std::uint64_t offset : index->sessions) {
    auto session = reader->session_at(offset);
    if (!session) return session.error();
  }
  return {};
}

/// What `check_archive` finds; nothing when the file cannot even be opened.
std::optional<SnapshotCheck> checked(std::span<const std::byte> bytes) {
  auto reader = ArchiveReader::open(file_of(bytes));
  if (!reader) return std::nullopt;
  auto report = check_archive(*reader, {});
  REQUIRE(report);
  return std::move(*report);
}

void refused(std::span<const std::byte> bytes) {
  const Error error = read_through(bytes);
  CHECK((error.code == Errc::corrupt || error.code == Errc::incompatible));
  CHECK_THAT(error.message, contains("memory.esnap"));
  const auto report = checked(bytes);
  CHECK((!report || !report->damage.empty()));
}

std::vector<std::size_t> frame_offsets(std::span<const std::byte> bytes) {
  auto forge = Forge::take_apart(bytes);
  REQUIRE(forge);
  std::vector<std::size_t> offsets;
  std::size_t at = forge->head.size();
  for (const Forge::Frame& frame : forge->frames) {
    offsets.push_back(at);
    at += sizeof(FrameHeader) + align_up(frame.payload.size(), 8);
  }
  REQUIRE(at == bytes.size());
  return offsets;
}

std::vector<std::byte> flipped(std::span<const std::byte> bytes, std::size_t bit) {
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  copy[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  return copy;
}

}  // namespace

TEST_CASE("a snapshot taken apart and sealed again is the same", "[archive]") {
  const auto bytes = bytes_of(small_sample());
  CHECK((Forge::take_apart(bytes)->seal() == bytes));
  CHECK(read_through(bytes).message.empty());
  CHECK(read_by_index(bytes).message.empty());
  const auto report = checked(bytes);
  REQUIRE(report);
  CHECK(report->damage.empty());
  CHECK(report->blocks == 12);
  CHECK(report->sessions == 2);
  CHECK(report->raw_bytes == (13 + 8 + 8 + 6 + 8) * 80);
}

TEST_CASE("a snapshot that is cut off anywhere is refused", "[archive]") {
  const auto bytes = bytes_of(small_sample());
  std::set<std::size_t> cuts;
  for (std::size_t at = 0; at < bytes.size(); at += 512) cuts.insert(at);
  for (const std::size_t offset : frame_offsets(bytes)) {
    for (const std::size_t around :
         {offset - 8, offset - 1, offset, offset + 1, offset + 63, offset + 64, offset + 65}) {
      if (around < bytes.size()) cuts.insert(around);
    }
  }
  for (const std::size_t cut : cuts) {
    INFO("cut at " << cut << " of " << bytes.size());
    const auto part = std::span(bytes).first(cut);
    refused(part);
    CHECK(read_by_index(part).code == Errc::corrupt);
  }
}

TEST_CASE("bytes behind the end of a snapshot are refused", "[archive]") {
  auto bytes = bytes_of(small_sample());
  bytes.resize(bytes.size() + 8);
  refused(bytes);
  CHECK(read_by_index(bytes).code == Errc::corrupt);
}

TEST_CASE("every flipped bit of the head and of frame headers is noticed", "[archive]") {
  const auto bytes = bytes_of(small_sample());
  std::vector<std::size_t> places;
  const auto offsets = frame_offsets(bytes);
  for (std::size_t at = 0; at < offsets.front(); ++at) places.push_back(at);
  for (const std::size_t offset : offsets) {
    for (std::size_t at = 0; at < sizeof(FrameHeader); ++at) places.push_back(offset + at);
  }
  for (const std::size_t place : places) {
    for (std::size_t bit = 0; bit < 8; ++bit) {
      INFO("byte " << place << ", bit " << bit);
      const auto bad = flipped(bytes, 8 * place + bit);
      refused(bad);
    }
  }
}

TEST_CASE("flipped bits of payloads and padding are noticed", "[archive]") {
  for (const auto compression : {Compression::raw, Compression::lz4, Compression::zstd}) {
    const auto bytes = bytes_of(small_sample(), compression);
    for (std::size_t bit = 8 * frame_offsets(bytes).front(); bit < 8 * bytes.size(); bit += 5) {
      INFO("bit " << bit);
      refused(flipped(bytes, bit));
    }
  }
}

TEST_CASE("a damaged payload is told by its frame, and everything else is checked", "[archive]") {
  const auto bytes = bytes_of(small_sample(), Compression::raw);
  const auto offsets = frame_offsets(bytes);
  const auto forge = Forge::take_apart(bytes);
  const auto whole = checked(bytes);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (forge->frames[i].payload.empty() || i == 0) continue;
    INFO("frame " << i);
    const auto bad = flipped(bytes, 8 * (offsets[i] + sizeof(FrameHeader)) + 3);
    const auto report = checked(bad);
    REQUIRE(report);
    REQUIRE(report->damage.size() == 1);
    CHECK(report->damage[0].block == i);
    CHECK(report->damage[0].file == "memory.esnap");
    CHECK_THAT(report->damage[0].what, contains("frame " + std::to_string(i)));
    CHECK_THAT(report->damage[0].what, contains("payload_checksum"));
    CHECK_THAT(report->damage[0].what, contains("offset " + std::to_string(offsets[i])));
    CHECK(report->frames == whole->frames);
    if (forge->frames[i].kind() == FrameKind::chunk) {
      CHECK(report->raw_bytes == whole->raw_bytes - forge->frames[i].payload.size());
      CHECK(report->blocks == whole->blocks);
    } else {
      CHECK(report->raw_bytes == whole->raw_bytes);
    }
  }
}

TEST_CASE("a damaged frame header in a file hides only its own payload", "[archive]") {
  const auto bytes = bytes_of(small_sample(), Compression::raw);
  const auto offsets = frame_offsets(bytes);
  const auto whole = checked(bytes);
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    INFO("frame " << i);
    const auto report = checked(flipped(bytes, 8 * offsets[i] + 300));
    REQUIRE(report);
    CHECK(report->damage.size() == 1);
    CHECK(report->damage[0].block == i);
    CHECK(report->frames == whole->frames - 1);
  }
}
