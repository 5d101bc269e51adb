#include "llama/store_fit.hpp"
#include "llama_support.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// A session file by hand: a sequence file's tokens and cache, with another head and the name of
/// the architecture between them.
struct SessionBuilder {
  SlotBuilder slot;
  std::uint32_t version = 11;
  std::string architecture = "llama";

  explicit SessionBuilder(std::uint32_t tokens = 40) : slot(tokens) { slot.packed = false; }

  [[nodiscard]] std::string build() const {
    const std::string sequence = slot.build();
    const std::size_t memory = slot.memory_offset();
    std::string out = SlotBuilder::words({0x6767736e, version});
    out += sequence.substr(8, memory - 8);
    out += SlotBuilder::words({static_cast<std::uint32_t>(architecture.size())}) + architecture;
    return out + sequence.substr(memory);
  }

  [[nodiscard]] std::size_t architecture_offset() const { return slot.memory_offset(); }
  [[nodiscard]] std::size_t memory_offset() const {
    return architecture_offset() + 4 + architecture.size();
  }
  [[nodiscard]] std::size_t cells_offset() const { return memory_offset() + 8; }
};

std::string written_as(const SeqFile& file, const SeqLayout& layout) {
  UniqueFd fd(::memfd_create("written", MFD_CLOEXEC));
  ByteSink sink(fd.get(), "written");
  const RowFill fill = [&](std::uint32_t layer, Plane plane, TokenRange range,
                           std::span<std::byte> out) {
    return file.rows(layer, plane, range, out);
  };
  REQUIRE(write_sequence(layout, file.tokens(), fill, sink));
  CHECK(sink.bytes() == layout.file_bytes(file.tokens().size()));
  std::string bytes(sink.bytes(), '\0');
  REQUIRE(::pread(fd.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return bytes;
}

std::string with_sequence(const SessionBuilder& session, std::string bytes, std::uint32_t number) {
  for (std::size_t cell = 0; cell < session.slot.tokens.size(); ++cell) {
    bytes = patched(std::move(bytes), session.cells_offset() + 12 * cell + 8,
                    SlotBuilder::words({number}));
  }
  return bytes;
}

}  // namespace

TEST_CASE("a session file of llama.cpp tells its tokens, layout and architecture", "[llama]") {
  const auto file = SeqFile::open(golden("smollm2-4.session"));
  REQUIRE(file);
  CHECK(std::vector<std::int32_t>(file->tokens().begin(), file->tokens().end()) ==
        std::vector<std::int32_t>{42185, 216, 32, 42});
  const SeqLayout& layout = file->layout();
  CHECK(layout.container == Container::session);
  CHECK(layout.version == 4);
  CHECK(layout.architecture == "llama");
  CHECK(layout.layers == std::vector<LayerRows>(30, {384, 384}));
  CHECK(layout.file_bytes(4) == file->bytes());
}

TEST_CASE("a session file and the sequence file of one context are each other's", "[llama]") {
  const auto session = SeqFile::open(golden("smollm2-4.session"));
  const auto sequence = SeqFile::open(golden("smollm2-4.slot"));
  REQUIRE(session);
  REQUIRE(sequence);
  CHECK(same_rows(*session, *sequence, {0, 4}));
  const std::string session_bytes = content_of(golden("smollm2-4.session"));
  const std::string sequence_bytes = content_of(golden("smollm2-4.slot"));
  const bool to_sequence = written_as(*session, sequence->layout()) == sequence_bytes;
  const bool to_session = written_as(*sequence, session->layout()) == session_bytes;
  const bool again = written(*session, 4) == session_bytes;
  CHECK(to_sequence);
  CHECK(to_session);
  CHECK(again);
}

TEST_CASE("every kind of session file delivers its rows and is written again alike", "[llama]") {
  for (const std::uint32_t version : {10U, 11U}) {
    for (const bool transposed : {false, true}) {
      for (const bool values : {false, true}) {
        SessionBuilder session;
        session.version = version;
        session.slot.version = version - 7;
        session.slot.transposed = transposed;
        session.slot.values = values;
        session.slot.streams = 3;
        session.architecture = "qwen3-moe_2.5";
        const std::string bytes = session.build();
        const auto file = parse(bytes);
        REQUIRE(file);
        CHECK(file->layout().version == version - 7);
        CHECK(delivers(*file, session.slot));
        // The writer numbers its one sequence 0, the builder 2.
        const bool same = written(*file, 40) == with_sequence(session, bytes, 0);
        CHECK(same);
      }
    }
  }
}

TEST_CASE("a session whose one sequence has any number is read", "[llama]") {
  const SessionBuilder session;
  const auto file = parse(with_sequence(session, session.build(), 5));
  REQUIRE(file);
  CHECK(delivers(*file, session.slot));
}

TEST_CASE("a session with several sequences is refused by name", "[llama]") {
  const SessionBuilder session;
  const std::string bytes = session.build();
  const std::size_t seventh = session.cells_offset() + 12 * 7;
  Error error = refusal(patched(bytes, seventh + 8, 3));
  CHECK(error.code == Errc::incompatible);
  CHECK_THAT(error.message, contains("cell 7 belongs to sequence 3, cell 0 to sequence 2"));
  error = refusal(patched(bytes, seventh + 4, 2));
  CHECK(error.code == Errc::incompatible);
  CHECK_THAT(error.message, contains("cell 7 belongs to 2 sequences"));
  // The second sequence begins at position 0 again: its owner is told before its position.
  error = refusal(patched(patched(bytes, seventh, 0), seventh + 8, 3));
  CHECK_THAT(error.message, contains("several sequences"));
  CHECK_THAT(refusal(patched(bytes, seventh + 4, 0)).message, contains("n_seq_id of cell 7"));

  SessionBuilder split;
  split.slot.streams = 2;
  std::string streams = split.build();
  streams.replace(streams.size() - 4, 4, SlotBuilder::words({1, 0, 1, 1}));
  CHECK_THAT(refusal(streams).message, contains("streams 0 and 1 both hold cells"));
}

TEST_CASE("states that hold more than one cache are refused in sessions too", "[llama]") {
  SessionBuilder session;
  const SlotBuilder window(20);
  session.slot.tail = window.build().substr(window.memory_offset());
  CHECK_THAT(refusal(session.build()).message, contains("sliding-window"));
  const std::string state =
      SlotBuilder::words({1, 39, 1, 0, 0, 24, 0, 256, 0}) + std::string(4096, 'x');
  session.slot.tail = state;
  CHECK_THAT(refusal(session.build()).message, contains("recurrent"));
  const std::string head = session.build().substr(0, session.memory_offset());
  const Error error = refusal(head + state);
  CHECK(error.code == Errc::incompatible);
  CHECK_THAT(error.message, contains("recurrent"));
}

TEST_CASE("a session has nothing behind its cache", "[llama]") {
  SessionBuilder session;
  for (const std::string& tail :
       {std::string("x"), "PKCS" + SlotBuilder::words({1, 0}), std::string(64, '\0')}) {
    session.slot.tail = tail;
    CHECK_FALSE(parse(session.build()));
  }
}

TEST_CASE("a session of another version is refused by name", "[llama]") {
  const std::string bytes = SessionBuilder().build();
  for (const std::uint32_t version : {0U, 3U, 4U, 9U, 12U, UINT32_MAX}) {
    const Error error = refusal(patched(bytes, 4, version));
    CHECK(error.code == Errc::incompatible);
    CHECK_THAT(error.message, contains("version of the session at byte 4: found " +
                                       std::to_string(version) + ", expected 10…11"));
  }
}

TEST_CASE("an architecture that no model has is refused before it sizes anything", "[llama]") {
  const SessionBuilder session;
  const std::string bytes = session.build();
  const std::size_t at = session.architecture_offset();
  for (const std::uint32_t length : {0U, 65U, 0x7FFFFFFFU, UINT32_MAX}) {
    CHECK_THAT(refusal(patched(bytes, at, length)).message, contains("arch_len"));
  }
  for (const char* name : {"lla a", "\x1b[2Ja", "ll\nma"}) {
    CHECK_THAT(refusal(patched(bytes, at + 4, std::string_view(name, 5))).message,
               contains("architecture"));
  }
  CHECK_THAT(refusal(patched(bytes, at + 4, std::string_view("\0\0\0\0\0", 5))).message,
             contains("architecture"));
}

TEST_CASE("a session cut anywhere is refused", "[llama]") {
  const SessionBuilder small(3);
  const std::string bytes = small.build();
  std::size_t accepted = 0;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto file = parse(std::string_view(bytes).substr(0, length));
    // Where the V planes begin, the file of a model without V would end.
    if (file && file->layout().has_values()) ++accepted;
  }
  CHECK(accepted == 0);
  const std::string real = content_of(golden("smollm2-4.session"));
  for (std::size_t length = 0; length < real.size(); length += 512) {
    const auto file = parse(std::string_view(real).substr(0, length));
    CHECK_FALSE((file && file->layout().has_values()));
  }
}

TEST_CASE("a flipped bit in a session's head changes nothing unseen", "[llama]") {
  const SessionBuilder session(3);
  const std::string bytes = session.build();
  const std::size_t head = session.cells_offset() + 12 * 3 + 16;
  std::size_t wrong = 0;
  for (std::size_t bit = 0; bit < 8 * head; ++bit) {
    std::string flipped = bytes;
    char& byte = flipped[bit / 8];
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    const auto file = parse(flipped);
    if (!file) continue;
    const std::size_t at = bit / 8;
    const bool token = at >= 12 && at < session.architecture_offset();
    const bool letter = at >= session.architecture_offset() + 4 && at < session.memory_offset();
    const bool rotation = at >= head - 8;
    const bool sound = (token || letter || rotation) && file->tokens().size() == 3 &&
                       file->layout().layers.size() == 3;
    if (!sound) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a session without the name of an architecture is never written", "[llama]") {
  const auto file = SeqFile::open(golden("smollm2-4.slot"));
  REQUIRE(file);
  SeqLayout layout = file->layout();
  layout.container = Container::session;
  const RowFill fill = [&](std::uint32_t layer, Plane plane, TokenRange range,
                           std::span<std::byte> out) {
    return file->rows(layer, plane, range, out);
  };
  for (const char* name : {"", "a b", "a/b"}) {
    layout.architecture = name;
    UniqueFd fd(::memfd_create("written", MFD_CLOEXEC));
    ByteSink sink(fd.get(), "written");
    CHECK(write_sequence(layout, file->tokens(), fill, sink).error().code == Errc::invalid);
  }
}
