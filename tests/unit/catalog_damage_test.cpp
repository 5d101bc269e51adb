#include <random>

#include "catalog_forge.hpp"
#include "format/session_file.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

/// Every way in which a file can be wrong ends in words, and never in other tokens.

namespace {

/// A session file by the words of doc/session_format.md alone: "chat", namespace "ns", {a: bc},
/// tokens 5, 6, 7.
std::vector<std::byte> session_by_hand() {
  std::vector<std::byte> file(192 + 16 + 12);
  start_file(file, "ESKERSES");
  put_at<std::uint64_t>(file, 48, 9);
  put_at<std::uint64_t>(file, 56, 1'234);
  put_at<std::uint64_t>(file, 64, 0xAB);
  put_at<std::uint32_t>(file, 92, 3);
  put_at<std::uint64_t>(file, 96, 77);
  put_at<std::uint64_t>(file, 104, 88);
  put_at<std::uint32_t>(file, 112, 7);
  put_at<std::uint32_t>(file, 116, 1);
  put_at<std::int32_t>(file, 120, -2);
  put_at<std::uint32_t>(file, 124, 1);
  put_at<std::uint32_t>(file, 128, 4);
  put_at<std::uint32_t>(file, 132, 2);
  put_text(file, 192, "chatns");
  put_at<std::uint16_t>(file, 198, 1);
  put_at<std::uint16_t>(file, 200, 2);
  put_text(file, 202, "abc");
  put_at<std::int32_t>(file, 208, 5);
  put_at<std::int32_t>(file, 212, 6);
  put_at<std::int32_t>(file, 216, 7);
  seal_session(file);
  return file;
}

/// Changes session "chat", made by hand, seals it again and reads it.
template <class Change>
Error read_changed(const Catalog& catalog, const Change& change) {
  std::vector<std::byte> file = session_by_hand();
  change(file);
  seal_session(file);
  plant(catalog, "chat.session", file);
  const Result<SessionRecord> read = catalog->read("chat");
  REQUIRE_FALSE(read);
  CHECK_THAT(read.error().message, contains("chat.session"));
  return read.error();
}

}  // namespace

TEST_CASE("files made from the words of the format page alone read as they say", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  std::vector<std::byte> file = session_by_hand();
  std::vector<std::byte> tokens(96 + 8);
  start_file(tokens, "ESKERTOK");
  put_at<std::uint32_t>(tokens, 48, 2);
  put_at<std::int32_t>(tokens, 96, 3);
  put_at<std::int32_t>(tokens, 100, 4);
  put_at(tokens, 56, detail::xxh3(std::span(tokens).subspan(96)));
  seal_header(tokens, 88);
  put_at<std::uint64_t>(file, 72, 0xCD);
  put_at(file, 80, detail::xxh3(std::span(tokens).subspan(96, 4)));
  put_at<std::uint32_t>(file, 88, 1);  // one of the two
  seal_session(file);
  std::vector<std::byte> state(128 + 5);
  start_file(state, "ESKERATT");
  put_at<std::uint64_t>(state, 48, 0x1234);
  put_at<std::uint64_t>(state, 56, 5);
  put_text(state, 128, "state");
  put_at(state, 64, detail::xxh3(std::span(state).subspan(128)));
  put_at<std::uint32_t>(state, 72, 4);
  put_at<std::uint32_t>(state, 76, 1);
  put_text(state, 80, "w");
  seal_header(state, 120);
  plant(catalog, "chat.session", file);
  plant(catalog, "chat.00000000000000cd.tokens", tokens);
  plant(catalog, "chat.00000000000000ab.w.state", state);

  const SessionRecord read = need(catalog->read("chat"));
  CHECK(read.name == "chat");
  CHECK(read.name_space == "ns");
  CHECK(read.metadata == SessionMetadata{{"a", "bc"}});
  CHECK(read.tokens == std::vector<std::int32_t>{3, 5, 6, 7});
  CHECK(read.revision == 9);
  CHECK(read.created_unix_ns == 1'234);
  CHECK(read.keep_max_bytes == 77);
  CHECK(read.time_to_live_s == 88);
  CHECK(read.priority == -2);
  CHECK(read.kept);
  const auto found = need(catalog->state("chat", "w"));
  CHECK(found.record.position == 4);
  CHECK(found.record.path_hash == 0x1234);
  REQUIRE(found.bytes.size() == 5);
  CHECK(std::memcmp(found.bytes.data(), "state", 5) == 0);
}

TEST_CASE("any flipped byte of a session file is damage with words", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("chat", 20)));
  need(catalog->write(record_of("other", 20)));
  const std::string path = catalog.path("chat.session");
  const std::vector<std::byte> good = read_file(path);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const unsigned mask : {0x01U, 0x80U}) {
      CAPTURE(at, mask);
      flip_byte(path, at, mask);
      const Error error = read_error(catalog, "chat");
      REQUIRE(error.code == Errc::corrupt);
      REQUIRE_THAT(error.message, contains("chat.session: ") && contains("expected"));
      REQUIRE(need(catalog->names()).size() == 2);
      REQUIRE(catalog->read("other"));
      flip_byte(path, at, mask);
    }
  }
  CHECK(catalog->read("chat"));
}

TEST_CASE("any flipped byte of a token file is damage and never other tokens", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("parent", 65)));
  need(catalog->write_fork("parent", record_of("chat", 65)));  // gives both a small token file
  const std::string path = catalog.path(catalog.listing(".tokens").front());
  const std::vector<std::byte> good = read_file(path);
  REQUIRE(good.size() == 96 + 4 * 65);
  for (std::size_t at = 0; at < good.size(); ++at) {
    CAPTURE(at);
    flip_byte(path, at);
    const Error error = read_error(catalog, "chat");
    REQUIRE(error.code == Errc::corrupt);
    REQUIRE_THAT(error.message, contains(".tokens: ") && contains("expected"));
    flip_byte(path, at);
  }
  CHECK(need(catalog->read("chat")).tokens == some_tokens(65));
}

TEST_CASE("any flipped byte of a state file is damage, and the session is whole", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("chat", 20)));
  need(catalog->attach("chat", {"window", 20, 7, 0}, some_bytes(100, 1)));
  const std::string path = catalog.path(catalog.listing(".state").front());
  for (std::size_t at = 0; at < 228; ++at) {
    CAPTURE(at);
    flip_byte(path, at);
    const auto state = catalog->state("chat", "window");
    REQUIRE_FALSE(state);
    REQUIRE(state.error().code == Errc::corrupt);
    REQUIRE_THAT(state.error().message, contains(".window.state: ") && contains("expected"));
    const auto listed = need(catalog->attachments("chat"));
    REQUIRE(listed.size() == 1);
    REQUIRE(listed[0].record.label == "window");
    REQUIRE(listed[0].damage.empty() == (at >= 128));
    REQUIRE(catalog->read("chat"));
    flip_byte(path, at);
  }
  CHECK(need(catalog->state("chat", "window")).bytes == some_bytes(100, 1));
}

TEST_CASE("files cut at any length, or with a byte too many, are damage", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("parent", 65)));
  need(catalog->write_fork("parent", record_of("chat", 66)));
  need(catalog->attach("chat", {"w", 20, 7, 0}, some_bytes(30, 1)));
  std::string token_file;
  for (const std::string& name : catalog.listing(".tokens")) {
    if (name.starts_with("chat.")) token_file = name;
  }
  for (const std::string& name :
       {std::string("chat.session"), token_file, catalog.listing(".state").front()}) {
    const std::vector<std::byte> good = read_file(catalog.path(name));
    for (std::size_t length = 0; length <= good.size() + 1; ++length) {
      if (length == good.size()) continue;
      CAPTURE(name, length);
      fs::resize_file(catalog.path(name), length);
      if (name.ends_with(".state")) {
        REQUIRE(catalog->state("chat", "w").error().code == Errc::corrupt);
        REQUIRE_FALSE(need(catalog->attachments("chat"))[0].damage.empty());
      } else {
        REQUIRE(read_error(catalog, "chat").code == Errc::corrupt);
      }
      overwrite(catalog.path(name), 0, good);
      fs::resize_file(catalog.path(name), good.size());
    }
  }
  CHECK(catalog->read("chat"));
  CHECK(catalog->state("chat", "w"));
}

TEST_CASE("sealed session files with impossible fields are refused by the field's name",
          "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  plant(catalog, "chat.session", session_by_hand());
  REQUIRE(catalog->read("chat"));
  struct Wrong {
    const char* field;
    std::size_t offset;
    std::uint64_t value;
    std::size_t bytes;
  };
  const std::vector<Wrong> wrong = {{"state_suffix", 64, 0, 8},
                                    {"token_file_tokens", 72, 5, 8},
                                    {"token_hash", 80, 5, 8},
                                    {"token_file_tokens", 88, 5, 4},
                                    {"file size", 92, 2, 4},
                                    {"inline_tokens", 92, 0xFFFF'FFFF, 4},
                                    {"file size", 92, 0x03FF'FFFF, 4},
                                    {"metadata_bytes", 112, 0xFFFF'FFFF, 4},
                                    {"metadata_bytes", 112, 6, 4},
                                    {"metadata", 112, 6, 4},
                                    {"metadata_entries", 116, 2, 4},
                                    {"metadata", 116, 0, 4},
                                    {"metadata_bytes", 116, ~0U, 4},
                                    {"flags", 124, 3, 4},
                                    {"name_bytes", 128, 0, 4},
                                    {"name_bytes", 128, 65, 4},
                                    {"name", 128, 3, 4},
                                    {"namespace_bytes", 132, 65, 4},
                                    {"dropped_paths", 136, 257, 4},
                                    {"reserved", 140, 1, 4},
                                    {"reserved", 183, 1, 1},
                                    {"name", 192, 0x0A, 1},
                                    {"name", 192, 0xFF, 1},
                                    {"metadata", 198, 0, 2},
                                    {"metadata", 198, 0xFFFF, 2},
                                    {"metadata", 202, 0x07, 1},
                                    {"metadata", 203, 0x07, 1},
                                    {"the space after", 205, 1, 1}};
  for (const Wrong& one : wrong) {
    CAPTURE(one.field, one.offset, one.value);
    const Error error = read_changed(catalog, [&](std::vector<std::byte>& file) {
      std::memcpy(file.data() + one.offset, &one.value, one.bytes);
    });
    CHECK(error.code == Errc::corrupt);
    if (std::string(one.field) != "metadata_entries") {
      CHECK_THAT(error.message, contains("chat.session: ") && contains("expected"));
    }
  }
}

TEST_CASE("a session of a newer format is refused, kept from being replaced, and removable",
          "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  const std::size_t offset = GENERATE(12U, 16U, 23U);
  const Error error =
      read_changed(catalog, [&](std::vector<std::byte>& file) { file[offset] = std::byte{0x40}; });
  CHECK(error.code == Errc::incompatible);
  const std::vector<std::byte> before = read_file(catalog.path("chat.session"));
  CHECK(catalog->write(record_of("chat", 1)).error().code == Errc::incompatible);
  CHECK(catalog->rename("chat", "new").error().code == Errc::incompatible);
  CHECK(catalog->write_fork("chat", record_of("new", 1)).error().code == Errc::incompatible);
  CHECK(read_file(catalog.path("chat.session")) == before);
  need(catalog->remove("chat"));
  CHECK(catalog.listing().empty());
}

TEST_CASE("unknown compatible features and a newer writer are no reason to refuse", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  std::vector<std::byte> file = session_by_hand();
  put_at<std::uint32_t>(file, 8, 7);
  put_at<std::uint64_t>(file, 24, 0xF0);
  seal_session(file);
  plant(catalog, "chat.session", file);
  CHECK(need(catalog->read("chat")).revision == 9);
}

TEST_CASE("files that change places are damage: sessions, token files and states", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  for (const std::int32_t seed : {1, 2}) {
    const std::string name = "chat" + std::to_string(seed);
    need(catalog->write(record_of(name, 5'000, seed)));
    need(catalog->attach(name, {"one", 9, 7, 0}, some_bytes(100, 1)));
    need(catalog->attach(name, {"two", 9, 7, 0}, some_bytes(100, 2)));
  }
  const auto swap = [&](const std::string& a, const std::string& b) {
    fs::rename(catalog.path(a), catalog.path("x"));
    fs::rename(catalog.path(b), catalog.path(a));
    fs::rename(catalog.path("x"), catalog.path(b));
  };
  swap("chat1.session", "chat2.session");
  CHECK(read_error(catalog, "chat1").code == Errc::corrupt);
  CHECK_THAT(read_error(catalog, "chat1").message, contains("name is \"chat2\""));
  CHECK(catalog->rename("chat1", "new").error().code == Errc::corrupt);
  swap("chat1.session", "chat2.session");
  const std::vector<std::string> tokens = catalog.listing(".tokens");
  swap(tokens[0], tokens[1]);
  CHECK(read_error(catalog, "chat1").code == Errc::corrupt);
  CHECK_THAT(read_error(catalog, "chat2").message, contains("as the session file says"));
  fs::remove(catalog.path(tokens[0]));
  CHECK_THAT(read_error(catalog, "chat1").message, contains("token file is not there"));
  const std::vector<std::string> states = catalog.listing(".state");
  swap(states[0], states[1]);
  CHECK_THAT(catalog->state("chat1", "one").error().message, contains("label is \"two\""));
  // What is only damaged in its tokens can be written anew and keeps what is attached.
  swap(states[0], states[1]);
  need(catalog->write(record_of("chat1", 5'000)));
  CHECK(need(catalog->read("chat1")).tokens == some_tokens(5'000));
  CHECK(need(catalog->state("chat1", "one")).bytes == some_bytes(100, 1));
}

TEST_CASE("the files of another store are told from damage by its uuid", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("chat", 10)));
  SessionFiles::Place place = Catalog::place();
  place.uuid[15] = 1;
  const SessionFiles other = need(SessionFiles::open(catalog.store(), place, false));
  const Result<SessionRecord> read = other.read("chat");
  REQUIRE_FALSE(read);
  CHECK(read.error().code == Errc::corrupt);
  CHECK_THAT(read.error().message, contains("uuid is 5a5a") && contains("another store"));
}

TEST_CASE("files of random changes under right checksums are read or refused, and never harm",
          "[catalog]") {
  std::mt19937_64 random(20'240'607);
  const auto place = Catalog::place();
  const std::vector<std::byte> good = session_by_hand();
  std::uint64_t refused = 0;
  std::uint64_t taken = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::vector<std::byte> file = good;
    for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      // Behind magic, versions and uuid: with those wrong there is nothing more to find.
      const std::size_t at = 48 + random() % (file.size() - 48);
      const std::uint64_t value = random();
      const std::size_t bytes = std::min<std::size_t>(random() % 8 + 1, file.size() - at);
      std::memcpy(file.data() + at, &value, bytes);
    }
    if (random() % 4 == 0) file.resize(192 + random() % 64);
    seal_session(file);
    const auto read = detail::decode_session(file, {place.uuid, "chat.session"});
    if (!read) {
      ++refused;
      REQUIRE(read.error().code == Errc::corrupt);
      continue;
    }
    // What is accepted means exactly these bytes.
    ++taken;
    REQUIRE(detail::encode_session(*read, place.uuid) == file);
  }
  CHECK(refused > 10'000);
  CHECK(taken > 100);
}
