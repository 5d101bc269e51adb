#include "unit/archive_support.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace esker::test {

File file_of(std::span<const std::byte> bytes) {
  File file(memfd_create("archive", MFD_CLOEXEC), "memory.esnap");
  REQUIRE(file.valid());
  REQUIRE(file.write_at(0, bytes));
  return file;
}

void check_rows(ArchiveReader& reader, const Sample& sample, const ArchiveSpan& span,
                std::uint32_t threads) {
  const auto planes = plane_shapes(sample.head.geometry);
  std::vector<std::vector<std::byte>> got(planes.size());
  std::vector<std::uint32_t> rows(planes.size());
  for (std::size_t plane = 0; plane < planes.size(); ++plane) {
    got[plane].resize(std::size_t{span.rows} * planes[plane].row_bytes);
  }
  std::mutex mutex;
  const RowTaker take = [&](std::size_t plane, std::uint32_t first,
                            std::span<const std::byte> bytes) -> Result<void> {
    const std::lock_guard lock(mutex);
    std::memcpy(got[plane].data() + std::size_t{first} * planes[plane].row_bytes, bytes.data(),
                bytes.size());
    rows[plane] += static_cast<std::uint32_t>(bytes.size() / planes[plane].row_bytes);
    return {};
  };
  auto done = reader.rows({}, take, threads);
  INFO((done ? "" : done.error().message));
  REQUIRE(done);
  for (std::size_t plane = 0; plane < planes.size(); ++plane) {
    CHECK(rows[plane] == span.rows);
    std::vector<std::byte> wanted(got[plane].size());
    fill_rows(span, plane, 0, planes[plane].row_bytes, wanted);
    CHECK((got[plane] == wanted));
  }
}

namespace {

void check_span_nodes(const ArchiveSpan& found, const ArchiveSpan& wanted) {
  REQUIRE(found.nodes.size() == wanted.nodes.size());
  CHECK(found.first_node == wanted.first_node);
  CHECK(found.rows == wanted.rows);
  bool same = true;
  for (std::size_t i = 0; i < wanted.nodes.size(); ++i) {
    same = same && same_node(found.nodes[i], wanted.nodes[i]);
  }
  CHECK(same);
}

}  // namespace

void check_all(ArchiveReader& reader, const Sample& sample, std::uint32_t threads) {
  CHECK(reader.head().geometry == sample.head.geometry);
  CHECK(reader.head().model == sample.head.model);
  CHECK(reader.head().salt == sample.head.salt);
  REQUIRE(reader.namespaces().size() == sample.namespaces.size());
  std::size_t spans = 0;
  std::size_t sessions = 0;
  for (;;) {
    auto part = reader.next();
    INFO((part ? "" : part.error().message));
    REQUIRE(part);
    if (std::holds_alternative<ArchiveEnd>(*part)) break;
    if (const auto* span = std::get_if<ArchiveSpan>(&*part)) {
      REQUIRE(spans < sample.spans.size());
      check_span_nodes(*span, sample.spans[spans]);
      check_rows(reader, sample, *span, threads);
      ++spans;
    } else {
      REQUIRE(sessions < sample.sessions.size());
      CHECK(same_session(std::get<SessionWithStates>(*part), sample.sessions[sessions]));
      ++sessions;
    }
  }
  CHECK(spans == sample.spans.size());
  CHECK(sessions == sample.sessions.size());
}

void check_by_index(const ArchiveReader& reader, const Sample& sample) {
  auto index = reader.index();
  INFO((index ? "" : index.error().message));
  REQUIRE(index);
  REQUIRE(index->spans.size() == sample.spans.size());
  REQUIRE(index->sessions.size() == sample.sessions.size());
  CodecMemory memory;
  for (std::size_t i = 0; i < index->spans.size(); ++i) {
    const SpanPlace& place = index->spans[i];
    auto span = reader.span_at(place);
    INFO((span ? "" : span.error().message));
    REQUIRE(span);
    check_span_nodes(*span, sample.spans[i]);
    for (const ChunkPlace& chunk : place.chunks) {
      const std::size_t row_bytes = reader.planes()[chunk.plane].row_bytes;
      std::vector<std::byte> rows(chunk.rows * row_bytes);
      REQUIRE(reader.chunk_at(place, chunk, rows, memory));
      std::vector<std::byte> wanted(rows.size());
      fill_rows(*span, chunk.plane, chunk.first_row, row_bytes, wanted);
      CHECK((rows == wanted));
    }
  }
  for (std::size_t i = 0; i < index->sessions.size(); ++i) {
    auto session = reader.session_at(index->sessions[i]);
    INFO((session ? "" : session.error().message));
    REQUIRE(session);
    CHECK(same_session(*session, sample.sessions[i]));
  }
}

}  // namespace esker::test
