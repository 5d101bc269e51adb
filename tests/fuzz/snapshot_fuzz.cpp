/// A snapshot: whatever the bytes are, they are refused by name, or they are read to the end, and
/// then in each way alike: from front to back, as a stream, by the index, and by the check.
///
/// Input: one byte of `Treatment`, then the file.

#include <sys/mman.h>
#include <unistd.h>
#include <cstring>
#include <map>
#include <span>

#include "archive/node_table.hpp"
#include "archive/planes.hpp"
#include "archive/reader.hpp"
#include "archive/writer.hpp"
#include "base/hash.hpp"
#include "fuzz/fuzz_target.hpp"
#include "unit/archive_forge.hpp"

using namespace esker;
using namespace esker::detail;

namespace {

enum Treatment : std::uint8_t {
  right_sums = 1,  ///< all checksums, sequences and the index are made right first
  keep_index = 2,  ///< but the index stays as it is
  as_stream = 4,   ///< read through a descriptor, once
};

constexpr std::uint64_t most_rows = std::uint64_t{1} << 22;  ///< bytes of rows a round may decode
std::uint64_t accepted_inputs = 0;

class Memory final : public ByteSink {
 public:
  Result<void> write(std::span<const std::byte> more) override {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return {};
  }
  const std::string& label() const noexcept override { return label_; }
  std::vector<std::byte> bytes;

 private:
  std::string label_ = "fuzz";
};

SnapshotHead head_of(SnapshotUse use, Lossy lossy) {
  SnapshotHead head;
  head.geometry.layers = {{16, 24}, {64, 0}};
  head.geometry.dtype = "f16";
  head.geometry.block_tokens = 4;
  head.id.fill(1);
  head.salt.fill(2);
  head.use = use;
  head.lossy = lossy;
  fuzz::require(head.model.set("model", "fuzz").has_value(), "a model id can be made");
  if (lossy != Lossy::none) {
    const auto* mark = lossy == Lossy::q8 ? "q8" : "q4";
    fuzz::require(head.model.set("lossy", mark).has_value(), "a model id can be marked");
  }
  return head;
}

ArchiveNode node_of(std::uint32_t parent, std::uint32_t first, std::uint32_t tokens,
                    std::int32_t id) {
  ArchiveNode node;
  node.parent = parent;
  node.first_token = first;
  node.tokens = tokens;
  node.label.resize(4 * std::size_t{tokens});
  for (std::uint32_t i = 0; i < tokens; ++i, ++id) {
    std::memcpy(node.label.data() + 4 * std::size_t{i}, &id, sizeof id);
  }
  return node;
}

std::vector<ArchiveSpan> spans_of(bool bare) {
  ArchiveNode key = node_of(no_node, 0, 4, 7);
  key.kind = BlockKind::key;
  key.name_space = 1;
  std::vector<ArchiveSpan> spans{
      {0, {node_of(no_node, 0, 4, 10), node_of(0, 4, 4, 20), node_of(1, 8, 2, 30), key}, 14},
      {4, {node_of(1, 8, 4, 40), node_of(4, 12, 1, 50), node_of(1, 8, 3, 60)}, 8}};
  if (bare) {
    spans[0].nodes[1].has_rows = false;
    spans[0].rows -= 4;
  }
  return spans;
}

fuzz::Bytes good_file(std::uint8_t treatment, SnapshotUse use, const CodecChoice& codec) {
  Memory sink;
  const std::vector<ArchiveNamespace> names{
      {true, ""}, {use == SnapshotUse::cold, std::string(16, 'd')}, {true, "lora=1"}};
  auto writer = ArchiveWriter::start(sink, head_of(use, codec.lossy), names, {codec, 1});
  bool good = writer.has_value();
  const RowReader rows = [](std::size_t plane, std::uint32_t first, std::span<std::byte> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t seed = (i / 2 + first + plane) % 13;
      out[i] = static_cast<std::byte>(i % 2 == 0 ? seed : 0x38 + seed % 3);
    }
    return Result<void>();
  };
  for (const ArchiveSpan& span : spans_of(use == SnapshotUse::cold)) {
    good = good && writer->span(span, rows).has_value();
  }
  ArchiveSession session;
  session.name = "chat";
  session.tokens = {10, 11, 12, 13, 20};
  session.metadata = {{"lang", "de"}, {"title", "a chat"}};
  const std::vector<ArchiveState> states{{"rnn", 5, std::vector<std::byte>(20)},
                                         {"logits", 4, std::vector<std::byte>(3)}};
  good = good && writer->session(session, states).has_value();
  session.name = "other";
  session.name_space = 2;
  good = good && writer->session(session, {}).has_value() && writer->finish().has_value();
  fuzz::require(good, "a good snapshot is written");
  fuzz::Bytes input(1 + sink.bytes.size(), treatment);
  std::memcpy(input.data() + 1, sink.bytes.data(), sink.bytes.size());
  return input;
}

/// What reading told; sums of rows by plane and place.
struct Told {
  std::string error;
  std::uint64_t nodes = 0;
  std::uint64_t sessions = 0;
  std::uint64_t bytes = 0;
  bool too_large = false;
  std::map<std::array<std::uint64_t, 3>, std::uint64_t> rows;
};

void fail_as(Told& told, const Error& error, const char* label) {
  told.error = error.message;
  const bool kind = error.code == Errc::corrupt || error.code == Errc::incompatible;
  fuzz::require(kind, "a bad file is called corrupt or incompatible");
  fuzz::require(error.message.find(label) != std::string::npos, "damage names the file");
}

/// Everything from front to back.
Told read_all(Result<ArchiveReader> reader, const char* label, std::uint32_t threads) {
  Told told;
  if (!reader) {
    fail_as(told, reader.error(), label);
    return told;
  }
  const std::uint64_t token_bytes = reader->head().geometry.token_bytes();
  for (;;) {
    auto part = reader->next();
    if (!part) {
      fail_as(told, part.error(), label);
      return told;
    }
    if (std::holds_alternative<ArchiveEnd>(*part)) return told;
    if (std::holds_alternative<SessionWithStates>(*part)) {
      ++told.sessions;
      continue;
    }
    const auto& span = std::get<ArchiveSpan>(*part);
    told.nodes += span.nodes.size();
    told.bytes += span.rows * token_bytes;
    told.too_large = told.too_large || told.bytes > most_rows;
    if (told.too_large) continue;
    const RowTaker take = [&](std::size_t plane, std::uint32_t first,
                              std::span<const std::byte> rows) {
      const std::uint64_t row_bytes = reader->planes()[plane].row_bytes;
      fuzz::require(rows.size() % row_bytes == 0 && first + rows.size() / row_bytes <= span.rows,
                    "rows are of their span");
      if (threads == 1) told.rows[{span.first_node, plane, first}] = xxh3(rows);
      return Result<void>();
    };
    if (auto done = reader->rows({}, take, threads); !done) {
      fail_as(told, done.error(), label);
      return told;
    }
  }
}

/// The same by the index.
void read_by_index(const ArchiveReader& reader, Told& told) {
  const auto index = reader.index();
  if (!index) return fail_as(told, index.error(), "fuzz");
  NodeTable nodes(reader.head().geometry.block_tokens,
                  static_cast<std::uint32_t>(reader.namespaces().size()));
  CodecMemory memory;
  for (const SpanPlace& place : index->spans) {
    auto span = reader.span_at(place);
    if (!span) return fail_as(told, span.error(), "fuzz");
    if (auto ok = nodes.add(*span, Errc::corrupt, "fuzz"); !ok) {
      return fail_as(told, ok.error(), "fuzz");
    }
    told.nodes += span->nodes.size();
    for (const ChunkPlace& chunk : place.chunks) {
      const std::uint64_t bytes =
          std::uint64_t{chunk.rows} * reader.planes()[chunk.plane].row_bytes;
      told.bytes += bytes;
      told.too_large = told.too_large || told.bytes > most_rows;
      if (told.too_large) break;
      std::vector<std::byte> rows(static_cast<std::size_t>(bytes));
      if (auto done = reader.chunk_at(place, chunk, rows, memory); !done) {
        return fail_as(told, done.error(), "fuzz");
      }
      told.rows[{span->first_node, chunk.plane, chunk.first_row}] = xxh3(rows);
    }
  }
  for (const std::uint64_t offset : index->sessions) {
    if (auto session = reader.session_at(offset); !session) {
      return fail_as(told, session.error(), "fuzz");
    }
    ++told.sessions;
  }
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    const auto& at = nodes.at(node);
    fuzz::require(nodes.child(at.parent, at.name_space, at.kind, nodes.label(node)) == node,
                  "every node is found under its parent");
    if (at.end_token() > 4096 || at.kind != BlockKind::tokens) continue;
    const auto tokens = nodes.tokens_of(node);
    fuzz::require(nodes.match_spelled(tokens, at.name_space).tokens == tokens.size(),
                  "every path is found by its tokens");
  }
}

File file_of(std::span<const std::byte> bytes) {
  File file(memfd_create("fuzz", MFD_CLOEXEC), "fuzz");
  fuzz::require(file.write_at(0, bytes).has_value(), "the fuzzer's file is written");
  return file;
}

void read_each_way(std::span<const std::byte> bytes, bool stream) {
  if (stream) {
    const File file = file_of(bytes);
    ::lseek(file.fd(), 0, SEEK_SET);
    const Told told = read_all(ArchiveReader::open_stream(file.fd(), "stdin"), "stdin", 2);
    accepted_inputs += told.error.empty() ? 1 : 0;
    return;
  }
  const Told told = read_all(ArchiveReader::open(file_of(bytes)), "fuzz", 1);
  accepted_inputs += told.error.empty() ? 1 : 0;
  auto reader = ArchiveReader::open(file_of(bytes));
  if (!reader) return;
  Told by_index;
  read_by_index(*reader, by_index);
  if (told.error.empty()) {
    fuzz::require(by_index.error.empty(), "what is read to the end can be read by its index");
    fuzz::require(by_index.nodes == told.nodes && by_index.sessions == told.sessions,
                  "the index has all spans and sessions");
    fuzz::require(told.too_large || by_index.rows == told.rows, "both ways give the same rows");
  }
  if (told.too_large || by_index.too_large) return;
  const auto report = check_archive(*reader, {});
  fuzz::require(report.has_value(), "damage is reported, and no failure");
  fuzz::require(report->damage.empty() == told.error.empty(),
                "the check finds damage where reading fails, and none where it does not");
}

}  // namespace

std::vector<fuzz::Bytes> esker::fuzz::corpus() {
  std::vector<Bytes> inputs;
  for (const auto compression : {Compression::raw, Compression::lz4, Compression::zstd}) {
    for (const int treatment : {0, +right_sums, right_sums | as_stream, right_sums | keep_index}) {
      const auto use = compression == Compression::lz4 ? SnapshotUse::cold : SnapshotUse::portable;
      inputs.push_back(
          good_file(static_cast<std::uint8_t>(treatment), use, {compression, 0, Lossy::none}));
    }
  }
  for (const auto lossy : {Lossy::q8, Lossy::q4}) {
    inputs.push_back(good_file(right_sums, SnapshotUse::portable, {Compression::zstd, 0, lossy}));
  }
  return inputs;
}

std::uint64_t esker::fuzz::accepted() { return accepted_inputs; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(begin + 1, begin + size);
  if ((data[0] & right_sums) != 0) {
    if (auto forge = test::Forge::take_apart(bytes)) {
      forge->fix_index = (data[0] & keep_index) == 0;
      bytes = forge->seal();
    }
  }
  read_each_way(bytes, (data[0] & as_stream) != 0);
  return 0;
}
