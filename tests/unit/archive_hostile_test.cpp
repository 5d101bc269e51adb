#include <sys/mman.h>
#include <unistd.h>
#include <functional>
#include <thread>

#include "support/allocations.hpp"
#include "unit/archive_forge.hpp"
#include "unit/archive_support.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// Reads all of it, from a stream or a file; the error's message, or "".
std::string message_of(Result<ArchiveReader> reader) {
  if (!reader) return reader.error().message;
  const RowTaker ignore = [](std::size_t, std::uint32_t, std::span<const std::byte>) {
    return Result<void>();
  };
  for (;;) {
    auto part = reader->next();
    if (!part) return part.error().message;
    if (std::holds_alternative<ArchiveEnd>(*part)) return {};
    if (!std::holds_alternative<ArchiveSpan>(*part)) continue;
    if (auto done = reader->rows({}, ignore, 1); !done) return done.error().message;
  }
}

std::string message_of_file(std::span<const std::byte> bytes) {
  return message_of(ArchiveReader::open(file_of(bytes)));
}

std::string message_of_stream(std::span<const std::byte> bytes) {
  const File file = file_of(bytes);
  REQUIRE(lseek(file.fd(), 0, SEEK_SET) == 0);
  return message_of(ArchiveReader::open_stream(file.fd(), "stdin"));
}

using Change = std::function<void(Forge&)>;

/// Refused in these words by everything that reads.
void refused(const Change& change, const std::string& frame, const std::string& words,
             const Sample& sample = small_sample(), Compression compression = Compression::raw) {
  auto forge = Forge::take_apart(bytes_of(sample, compression));
  REQUIRE(forge);
  change(*forge);
  const auto bytes = forge->seal();
  INFO("expected: " << frame << ", " << words);
  CHECK_THAT(message_of_file(bytes),
             contains("memory.esnap") && contains(frame) && contains(words));
  CHECK_THAT(message_of_stream(bytes), contains("stdin") && contains(frame) && contains(words));
  auto reader = ArchiveReader::open(file_of(bytes));
  if (!reader) return;
  const auto report = check_archive(*reader, {});
  REQUIRE(report);
  REQUIRE(!report->damage.empty());
  CHECK_THAT(report->damage[0].what, contains(frame) && contains(words));
}

/// Where the nodes of a span's payload begin.
std::vector<std::size_t> node_offsets(const Forge::Frame& span) {
  std::vector<std::size_t> offsets;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < span.header.content; ++i) {
    offsets.push_back(at);
    const auto node = span.get<SnapshotNode>(at);
    at += sizeof node + static_cast<std::size_t>(align_up(node.label_bytes, 8));
  }
  return offsets;
}

/// Changes a node of the span: `which` counts within it.
Change node_change(std::size_t span, std::size_t which,
                   const std::function<void(SnapshotNode&)>& change) {
  return [=](Forge& forge) {
    Forge::Frame& frame = forge.first(FrameKind::span, span);
    const std::size_t at = node_offsets(frame)[which];
    auto node = frame.get<SnapshotNode>(at);
    change(node);
    frame.set(at, node);
  };
}

Change header_change(FrameKind kind, const std::function<void(FrameHeader&)>& change,
                     std::size_t skip = 0) {
  return [=](Forge& forge) { change(forge.first(kind, skip).header); };
}

}  // namespace

TEST_CASE("nodes that cannot be in a trie are refused by number and field", "[archive]") {
  const auto node = node_change;
  // Its own parent, a later one, and a child that does not follow its parent at once.
  refused(node(0, 0, [](SnapshotNode& n) { n.parent = 0; }), "frame 1: node 0", "parent is 0");
  refused(node(0, 1, [](SnapshotNode& n) { n.parent = 3; }), "frame 1: node 1", "parent is 3");
  refused(node(0, 2, [](SnapshotNode& n) { n.parent = 0; }), "node 2", "parent is 0");
  refused(node(0, 1, [](SnapshotNode& n) { n.parent = 77; }), "node 1", "parent is 77");
  refused(node(1, 0, [](SnapshotNode& n) { n.parent = 3; }), "node 8", "a full block of tokens");
  refused(node(1, 0, [](SnapshotNode& n) { n.parent = 6; }), "node 8", "a full block of tokens");
  refused(node(1, 0, [](SnapshotNode& n) { n.parent = 1; }), "node 8", "first_token is 12");
  refused(node(0, 0, [](SnapshotNode& n) { n.first_token = 4; }), "node 0", "first_token is 4");
  refused(node(0, 1, [](SnapshotNode& n) { n.name_space = 1; }), "node 1", "name_space is 1");
  refused(node(0, 0, [](SnapshotNode& n) { n.name_space = 3; }), "node 0", "name_space is 3");
  refused(node(0, 1, [](SnapshotNode& n) { n.tokens = 0; }), "node 1", "tokens is 0");
  refused(node(0, 1, [](SnapshotNode& n) { n.tokens = 5; }), "node 1", "tokens is 5");
  refused(node(0, 1, [](SnapshotNode& n) { n.tokens = 3; }), "node 1", "label_bytes is 16");
  refused(node(0, 1, [](SnapshotNode& n) { n.kind = 2; }), "node 1", "none, for a key");
  refused(node(0, 1, [](SnapshotNode& n) { n.kind = 3; }), "node 1", "kind is 3");
  refused(node(0, 1, [](SnapshotNode& n) { n.flags = 3; }), "node 1", "flags is 3");
  refused(node(0, 1, [](SnapshotNode& n) { n.flags = 0; }), "node 1", "flags is 0");
  refused(node(0, 1, [](SnapshotNode& n) { n.reserved = 1; }), "node 1", "reserved is 1");
  refused(node(0, 6, [](SnapshotNode& n) { n.tokens = 3; }), "node 6", "tokens is 3");
  refused(node(0, 7, [](SnapshotNode& n) { n.label_bytes = 65; }), "node 7", "label");
  refused(node(0, 7, [](SnapshotNode& n) { n.label_bytes = 0xFFFF; }), "node 7", "label_bytes");
}

TEST_CASE("two siblings with one label are refused, below roots and nodes", "[archive]") {
  const auto copy_label = [](std::size_t span, std::size_t from, std::size_t to) {
    return [=](Forge& forge) {
      Forge::Frame& frame = forge.first(FrameKind::span, span);
      const auto at = node_offsets(frame);
      for (std::size_t i = 0; i < 16; ++i) {
        frame.payload[at[to] + sizeof(SnapshotNode) + i] =
            frame.payload[at[from] + sizeof(SnapshotNode) + i];
      }
    };
  };
  // Nodes 8 and 10 both hang under node 2, of an earlier span.
  refused(copy_label(1, 0, 2), "frame 6: node 10", "label is that of node 8");
  const auto same_root = [](Forge& forge) {
    Forge::Frame& frame = forge.first(FrameKind::span);
    const auto at = node_offsets(frame);
    for (const std::size_t node : {at[4], at[5]}) {
      auto raw = frame.get<SnapshotNode>(node);
      raw.name_space = 0;
      frame.set(node, raw);
    }
  };
  refused(same_root, "frame 1: node 4", "label is that of node 0");
}

TEST_CASE("a key and a token block may have the same bytes as labels", "[archive]") {
  SampleBuilder builder(geometry_of(1, 2, 2, 1));
  builder.chain(no_node, 0, 1, 0, 0x41414141);
  builder.key(0, "AAAA");
  CHECK(message_of_file(bytes_of(builder.sample())).empty());
}

TEST_CASE("frames out of order, missing or twice are refused", "[archive]") {
  const auto erase = [](std::size_t frame) {
    return [frame](Forge& forge) {
      forge.frames.erase(forge.frames.begin() + static_cast<std::ptrdiff_t>(frame));
    };
  };
  const auto twice = [](std::size_t frame) {
    return [frame](Forge& forge) {
      forge.frames.insert(forge.frames.begin() + static_cast<std::ptrdiff_t>(frame),
                          forge.frames[frame]);
    };
  };
  const auto swap = [](std::size_t a, std::size_t b) {
    return [a, b](Forge& forge) { std::swap(forge.frames[a], forge.frames[b]); };
  };
  refused(erase(0), "frame 0", "kind is span, expected namespaces");
  refused(erase(1), "frame 1", "kind is chunk, expected a span");
  refused(erase(2), "frame 2", "plane is 1, expected 0");
  refused(erase(5), "frame 5", "kind is span, expected a chunk");
  refused(erase(6), "frame 6", "kind is chunk, expected a span");
  refused(twice(0), "frame 1", "kind is namespaces");
  refused(twice(1), "frame 2", "kind is span, expected a chunk");
  refused(twice(2), "frame 3", "plane is 0, expected 1");
  refused(swap(2, 3), "frame 2", "plane is 1, expected 0");
  refused(swap(1, 6), "frame 1", "first node is 8, expected 0");
  // 11 session, 12 and 13 its states, 14 session, 15 index, 16 end.
  refused(erase(12), "frame 12", "number is 1, expected 0");
  refused(erase(13), "frame 13", "kind is session, expected a state");
  refused(twice(13), "frame 14", "kind is state");
  refused(twice(11), "frame 12", "kind is session, expected a state");
  refused(twice(14), "frame 15", "number is 1, expected 2");
  refused(erase(15), "frame 15", "kind is end");
  refused(twice(15), "frame 16", "kind is index, expected end");
  refused(swap(15, 16), "frame 15", "kind is end");
  refused([](Forge& forge) { forge.frames.insert(forge.frames.begin() + 15, forge.frames[1]); },
          "frame 15", "kind is span, expected a session");
}

TEST_CASE("what frame headers say wrongly is refused by field", "[archive]") {
  const auto span = [](const std::function<void(FrameHeader&)>& change) {
    return header_change(FrameKind::span, change);
  };
  const auto chunk = [](const std::function<void(FrameHeader&)>& change) {
    return header_change(FrameKind::chunk, change);
  };
  refused(span([](FrameHeader& f) { f.number = 1; }), "frame 1", "first node is 1");
  refused(span([](FrameHeader& f) { f.content = 0; }), "frame 1", "nodes is 0");
  refused(span([](FrameHeader& f) { f.content = 4097; }), "frame 1", "nodes is 4097");
  refused(span([](FrameHeader& f) { f.content = 7; }), "frame 1",
          "rows is 29, expected at most 28");
  refused(span([](FrameHeader& f) { f.content = 9; }), "frame 1: node 8", "cut off");
  refused(span([](FrameHeader& f) { f.rows -= 1; }), "frame 1", "rows is 28, expected 29");
  refused(span([](FrameHeader& f) { f.rows = 1 << 30; }), "frame 1", "rows is 1073741824");
  refused(span([](FrameHeader& f) { f.compression = 1; }), "frame 1", "compression is 1");
  refused(span([](FrameHeader& f) { f.first_row = 1; }), "frame 1", "first_row is 1");
  refused(chunk([](FrameHeader& f) { f.rows -= 1; }), "frame 2", "rows is 28, expected 29");
  refused(chunk([](FrameHeader& f) { f.first_row = 1; }), "frame 2", "first_row is 1");
  refused(chunk([](FrameHeader& f) { f.number = 4; }), "frame 2", "plane is 4");
  refused(chunk([](FrameHeader& f) { f.compression = 9; }), "frame 2", "compression, filter");
  refused(chunk([](FrameHeader& f) { f.filter = 200; }), "frame 2", "compression, filter");
  refused(chunk([](FrameHeader& f) { f.lossy = 9; }), "frame 2", "compression, filter, lossy");
  refused(chunk([](FrameHeader& f) { f.reserved = 1; }), "frame 2", "reserved is 1");
  refused(header_change(FrameKind::end, [](FrameHeader& f) { f.number = 1; }), "frame 16",
          "number is 1");
  refused([](Forge& forge) { forge.first(FrameKind::chunk).header.kind = 0; }, "frame 2",
          "kind is 0");
  refused([](Forge& forge) { forge.first(FrameKind::chunk).header.kind = 8; }, "frame 2",
          "kind is 8");
  refused(
      [](Forge& forge) {
        forge.fix_rows = false;
        forge.first(FrameKind::chunk).header.content ^= 1;
      },
      "frame 2", "content is");
  refused(
      [](Forge& forge) {
        forge.fix_sequence = false;
        forge.frames[3].header.sequence = 9;
      },
      "frame 3", "sequence is 9, expected 3");
}

TEST_CASE("an index that is not that of the file is refused", "[archive]") {
  const auto index = [](const std::function<void(Forge::Frame&)>& change) {
    return [change](Forge& forge) {
      (void)forge.seal();
      forge.fix_index = false;
      change(forge.first(FrameKind::index));
    };
  };
  const auto both = [&](const std::function<void(Forge::Frame&)>& change, const std::string& words,
                        const std::string& by_index) {
    refused(index(change), "frame 15", words);
    auto forge = Forge::take_apart(bytes_of(small_sample(), Compression::raw));
    index(change)(*forge);
    auto reader = ArchiveReader::open(file_of(forge->seal()));
    REQUIRE(reader);
    const auto found = reader->index();
    REQUIRE(!found);
    CHECK_THAT(found.error().message, contains(by_index));
  };
  using F = Forge::Frame;
  both([](F& f) { f.set<std::uint64_t>(0, 8); }, "payload_checksum", "offset is 8");
  both([](F& f) { f.set<std::uint64_t>(0, std::uint64_t{1} << 60); }, "payload_checksum",
       "offset is 1152921504606846976");
  both([](F& f) { f.set<std::uint32_t>(16, 1); }, "payload_checksum", "first_node and nodes is 1");
  both([](F& f) { f.set<std::uint32_t>(20, 0); }, "payload_checksum", "first_node and nodes");
  both([](F& f) { f.set<std::uint32_t>(24, 3); }, "payload_checksum", "chunks of an index group");
  both([](F& f) { f.set<std::uint32_t>(24, 0xFFFF'FFFF); }, "payload_checksum",
       "chunks of an index group");
  both([](F& f) { f.set<std::uint32_t>(28, 1); }, "payload_checksum", "reserved is 1");
  both([](F& f) { f.set<std::uint64_t>(32, f.get<std::uint64_t>(32) + 8); }, "payload_checksum",
       "frame");
  both([](F& f) { f.set<std::uint64_t>(40, 1); }, "payload_checksum", "frame 2");
  both([](F& f) { f.header.content += 1; }, "groups is 5", "");
  both([](F& f) { f.header.content = UINT64_MAX; }, "groups is", "groups is");
  both([](F& f) { f.payload.resize(f.payload.size() + 8); }, "payload_bytes", "payload_bytes");
}

TEST_CASE("an end that points elsewhere is refused", "[archive]") {
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{320}, std::uint64_t{4},
                                     UINT64_MAX - 7, std::uint64_t{1} << 40}) {
    const auto change = [offset](Forge& forge) {
      (void)forge.seal();
      forge.fix_index = false;
      forge.first(FrameKind::end).header.content = offset;
    };
    refused(change, "frame 16", "offset of the index");
    auto forge = Forge::take_apart(bytes_of(small_sample()));
    change(*forge);
    auto reader = ArchiveReader::open(file_of(forge->seal()));
    REQUIRE(reader);
    CHECK(!reader->index());
  }
}

TEST_CASE("sessions that no store could have are refused by field", "[archive]") {
  const auto session = [](const std::function<void(Forge::Frame&, SnapshotSessionHead&)>& change,
                          std::size_t skip = 0) {
    return [change, skip](Forge& forge) {
      Forge::Frame& frame = forge.first(FrameKind::session, skip);
      auto head = frame.get<SnapshotSessionHead>(0);
      change(frame, head);
      frame.set(0, head);
    };
  };
  using F = Forge::Frame;
  using H = SnapshotSessionHead;
  refused(session([](F&, H& h) { h.tokens = 5; }), "frame 11", "tokens is cut off");
  refused(session([](F&, H& h) { h.tokens = 3; }), "frame 11", "payload_bytes");
  refused(session([](F&, H& h) { h.tokens = UINT32_MAX; }), "frame 11", "tokens is 4294967295");
  refused(session([](F&, H& h) { h.name_space = 3; }), "frame 11", "name_space is 3");
  refused(session([](F&, H& h) { h.kept = 2; }), "frame 11", "kept is 2");
  refused(session([](F&, H& h) { h.name_bytes = 0; }), "frame 11", "");
  refused(session([](F&, H& h) { h.name_bytes = 255; }), "frame 11", "name and metadata");
  refused(session([](F&, H& h) { h.metadata_bytes = UINT32_MAX; }), "frame 11", "metadata_bytes");
  refused(session([](F&, H& h) { h.reserved = 1; }), "frame 11", "reserved is 1");
  refused(session([](F&, H& h) { h.states = 1; }), "frame 13", "kind is state");
  refused(session([](F&, H& h) { h.states = 3; }), "frame 14", "kind is session");
  refused(session([](F& f, H&) { f.set(sizeof(H), char{7}); }), "frame 11", "");
  refused(session([](F& f, H&) { f.set(sizeof(H) + 4, char{'z'}); }), "frame 11", "not sorted");
  refused(
      [](Forge& forge) {
        Forge::Frame& second = forge.first(FrameKind::session, 1);
        auto head = second.get<H>(0);
        head.name_bytes = 4;
        second.set(0, head);
        const std::string rest = "chatlang";
        second.payload.resize(sizeof(H));
        const auto name = std::as_bytes(std::span(rest));
        second.payload.insert(second.payload.end(), name.begin(), name.begin() + 4);
        head.metadata_bytes = 0;
        second.set(0, head);
      },
      "frame 14", "name is that of an earlier session");
  const auto state = [](const std::function<void(F&)>& change) {
    return [change](Forge& forge) { change(forge.first(FrameKind::state, 1)); };
  };
  refused(state([](F& f) { f.set<std::uint32_t>(0, 5); }), "frame 13", "position is 5");
  refused(state([](F& f) { f.set<std::uint8_t>(4, 0); }), "frame 13", "label");
  refused(state([](F& f) { f.set<std::uint8_t>(4, 255); }), "frame 13", "label");
  refused(state([](F& f) { f.set<std::uint8_t>(5, 1); }), "frame 13", "reserved");
  refused(state([](F& f) { f.set<char>(8, '/'); }), "frame 13", "label");
  refused(state([](F& f) { f.set<char>(14, '0'); }), "frame 13", "label is that of an earlier");
  refused(state([](F& f) { f.payload.resize(4); }), "frame 13", "payload_bytes is 4");
}

TEST_CASE("namespaces that must not be there are refused", "[archive]") {
  const auto names = [](const std::function<void(Forge::Frame&)>& change) {
    return [change](Forge& forge) { change(forge.frames[0]); };
  };
  using F = Forge::Frame;
  // At 0 the empty one, at 8 a digest of 16 bytes, at 32 "lora=2".
  refused(names([](F& f) { f.set<std::uint8_t>(32, 0); }), "frame 0", "length of a digest is 6");
  refused(names([](F& f) { f.set<std::uint8_t>(8, 1); }), "frame 0", "a name in clear");
  refused(names([](F& f) { f.set<std::uint8_t>(32, 2); }), "frame 0", "named");
  refused(names([](F& f) { f.set<std::uint8_t>(34, 1); }), "frame 0", "reserved");
  refused(names([](F& f) { f.set<std::uint8_t>(47, 1); }), "frame 0", "padding");
  refused(names([](F& f) { f.set<std::uint8_t>(33, 65); }), "frame 0", "name");
  refused(names([](F& f) { f.set<std::uint8_t>(33, 0); }), "frame 0", "");
  refused(names([](F& f) { f.header.rows = 2; }), "frame 0", "payload_bytes");
  refused(names([](F& f) { f.header.rows = 4; }), "frame 0", "namespace 3");
  refused(names([](F& f) { f.header.rows = UINT32_MAX; }), "frame 0", "payload_bytes");
}

TEST_CASE("heads that say what cannot be are refused", "[archive]") {
  const auto head = [](const std::function<void(SnapshotHeader&)>& change) {
    return [change](Forge& forge) {
      SnapshotHeader raw;
      std::memcpy(&raw, forge.head.data(), sizeof raw);
      change(raw);
      std::memcpy(forge.head.data(), &raw, sizeof raw);
    };
  };
  using H = SnapshotHeader;
  refused(head([](H& h) { h.magic[0] = 'X'; }), "magic", "ESKERSNP");
  refused(head([](H& h) { h.read_version = 2; }), "read_version", "newer Esker");
  refused(head([](H& h) { h.incompatible_features = 4; }), "incompatible_features", "update");
  refused(head([](H& h) { h.header_bytes = UINT32_MAX; }), "header_bytes", "4294967295");
  refused(head([](H& h) { h.header_bytes += 8; }), "header_bytes", "");
  refused(head([](H& h) { h.layers = UINT32_MAX; }), "layers", "4294967295");
  refused(head([](H& h) { h.layers = 0; }), "layers", "0");
  refused(head([](H& h) { h.planes = 3; }), "planes", "3, expected 4");
  refused(head([](H& h) { h.model_id_bytes = UINT32_MAX; }), "model_id_bytes", "4294967295");
  refused(head([](H& h) { h.block_tokens = 0; }), "geometry", "block_tokens");
  refused(head([](H& h) { h.lossy = 1; }), "lossy of the model id", "q8");
  refused(head([](H& h) { h.lossy = 3; }), "lossy", "0…2");
  refused(head([](H& h) { h.use = 2; }), "use", "2");
  refused(head([](H& h) { h.use = 1; }), "a digest", "cold");
  refused(head([](H& h) { h.dtype[20] = 'x'; }), "dtype", "zeros");
  refused(head([](H& h) { h.reserved[50] = 1; }), "reserved", "zero");
}

TEST_CASE("features that may be ignored are ignored", "[archive]") {
  auto forge = Forge::take_apart(bytes_of(small_sample()));
  forge->head[offsetof(SnapshotHeader, compatible_features)] = std::byte{255};
  CHECK(message_of_file(forge->seal()).empty());
}

TEST_CASE("lengths that a hostile file only claims take no memory", "[archive]") {
  const std::vector<std::byte> good = bytes_of(small_sample(), Compression::raw);
  constexpr std::uint64_t bound = std::uint64_t{4} << 20;
  for (const FrameKind kind : {FrameKind::namespaces, FrameKind::span, FrameKind::chunk,
                               FrameKind::session, FrameKind::state, FrameKind::index}) {
    for (const std::uint64_t claimed : {std::uint64_t{1} << 60, std::uint64_t{1} << 31, UINT64_MAX,
                                        UINT64_MAX - 7, std::uint64_t{1} << 20}) {
      INFO("kind " << static_cast<int>(kind) << " claims " << claimed);
      auto forge = Forge::take_apart(good);
      Forge::Frame& frame = forge->first(kind);
      frame.header.payload_bytes = claimed;
      frame.lies = true;
      if (kind == FrameKind::namespaces) frame.header.rows = snapshot_max_namespaces;
      const auto bytes = forge->seal();
      const File file = file_of(bytes);
      const PeakOfMemory peak;
      CHECK(!message_of_file(bytes).empty());
      lseek(file.fd(), 0, SEEK_SET);
      CHECK(!message_of(ArchiveReader::open_stream(file.fd(), "stdin")).empty());
      auto reader = ArchiveReader::open(file_of(bytes));
      if (reader) CHECK(!check_archive(*reader, {})->damage.empty());
      if (reader && kind == FrameKind::index) CHECK(!reader->index());
      CHECK(peak.bytes() < bound);
    }
  }
}

TEST_CASE("a chunk that would decode to more than its rows is refused, in bounded memory",
          "[archive]") {
  // A mebibyte of zeros in a few bytes, for a chunk of one row.
  for (const auto compression : {Compression::lz4, Compression::zstd}) {
    std::vector<std::byte> zeros(std::size_t{1} << 20);
    CodecMemory memory;
    std::vector<std::byte> bomb;
    const RowShape shape = RowShape::of("f16", Plane::key, 16);
    const auto coding = encode_chunk(zeros, shape, {compression, 0, Lossy::none}, memory, bomb);
    REQUIRE(coding);
    REQUIRE(bomb.size() < 40'000);
    Forge forge = *Forge::take_apart(bytes_of(small_sample(), compression));
    SampleBuilder builder(geometry_of(1, 4096, 4096, 64));
    builder.chain(no_node, 0, 3, 0, 1);
    forge = *Forge::take_apart(bytes_of(builder.sample(), compression));
    Forge::Frame& chunk = forge.first(FrameKind::chunk);
    chunk.payload = bomb;
    chunk.header.compression = coding->compression;
    chunk.header.filter = coding->filter;
    const auto bytes = forge.seal();
    const PeakOfMemory peak;
    CHECK_THAT(message_of_file(bytes), contains("frame 2"));
    CHECK(peak.bytes() < std::uint64_t{8} << 20);
  }
}
