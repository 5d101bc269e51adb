#include <sys/stat.h>
#include <array>
#include <set>

#include "base/hash.hpp"
#include "catalog/file_names.hpp"
#include "catalog/new_file.hpp"
#include "catalog_support.hpp"
#include "region/directory.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

TEST_CASE("a session reads back as it was written, with few tokens and with many", "[catalog]") {
  const std::size_t count = GENERATE(0U, 1U, 64U, 4'096U, 4'097U, 20'000U);
  CAPTURE(count);
  const TempDir dir;
  const Catalog catalog(dir / "s");
  const SessionRecord written = record_of("chat", count);
  need(catalog->write(written));
  const SessionRecord read = need(catalog->read("chat"));
  CHECK(same_content(read, written));
  CHECK(read.used_unix_ns > written.created_unix_ns);
  CHECK(read.file_bytes == sum_of_sizes(catalog.path()));
  CHECK(catalog->has("chat"));
  CHECK(catalog.listing(".tokens").size() == (count > 4'096 ? 1 : 0));
}

TEST_CASE("names of every kind are kept apart and stay inside the directory", "[catalog]") {
  const std::vector<std::string> names = {
      "a", "A",  ".",         "..",     "../up", "a.b",    "Grüße 世界",        "a%20b", "a b", "%",
      "-", "_x", "a.session", "con\\x", "\"q\"", ".tmp-1", std::string(64, '/')};
  const TempDir dir;
  const Catalog catalog(dir / "s");
  for (std::size_t i = 0; i < names.size(); ++i) {
    need(catalog->write(record_of(names[i], i + 1, static_cast<std::int32_t>(i))));
  }
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  CHECK(need(catalog->names()) == sorted);
  for (std::size_t i = 0; i < names.size(); ++i) {
    CAPTURE(names[i]);
    CHECK(need(catalog->read(names[i])).tokens.size() == i + 1);
  }
  CHECK(catalog.listing(".session").size() == names.size());
  CHECK(catalog.listing().size() == names.size());
}

TEST_CASE("names that no session may have are refused before anything is written", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("good", 3)));
  for (const std::string& name : std::vector<std::string>{
           "", std::string(65, 'x'), "line\nbreak", std::string("nul\0", 4), "\x7F", "\xC2\x80",
           "\xFF", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE0\x80\xAF"}) {
    CAPTURE(name);
    CHECK(catalog->write(record_of(name, 1)).error().code == Errc::invalid);
    CHECK(catalog->write_fork("good", record_of(name, 3)).error().code == Errc::invalid);
    CHECK(catalog->rename("good", name).error().code == Errc::invalid);
    CHECK(catalog->read(name).error().code == Errc::missing);
    CHECK(catalog->remove(name).error().code == Errc::missing);
    CHECK_FALSE(catalog->has(name));
  }
  CHECK(catalog.listing() == std::vector<std::string>{"good.session"});
}

TEST_CASE("an encoded name is decoded only from its one spelling", "[catalog]") {
  using namespace esker::detail;
  CHECK(encode_session_name("a.b/ü") == "a%2Eb%2F%C3%BC");
  CHECK(decode_session_name("a%2Eb%2F%C3%BC") == "a.b/ü");
  for (const char* stem : {"", "a.b", "%2e", "%41", "%", "%2", "%GG", "%FF", "%0A", "a/b"}) {
    CAPTURE(stem);
    CHECK_FALSE(decode_session_name(stem));
  }
}

TEST_CASE("bad metadata, namespaces and labels are refused with words", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  SessionRecord record = record_of("chat", 3);
  const std::vector<SessionMetadata> bad = {{{"", "x"}},
                                            {{"a\n", "x"}},
                                            {{"a", "\x1B[2J"}},
                                            {{"a", "\xFF"}},
                                            {{"a", std::string(16'384, 'x')}}};
  for (const SessionMetadata& metadata : bad) {
    record.metadata = metadata;
    const Result<void> refused = catalog->write(record);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::invalid);
    CHECK_THAT(refused.error().message, contains("metadata"));
  }
  record.metadata = {{"a", std::string(16'383, 'x')}};
  need(catalog->write(record));
  CHECK(need(catalog->read("chat")).metadata == record.metadata);
  record.name_space = std::string(65, 'n');
  CHECK_THAT(catalog->write(record).error().message, contains("namespace"));
  for (const std::string& label : {std::string(), std::string(33, 'l'), std::string("a.b"),
                                   std::string("a/b"), std::string("ü")}) {
    CAPTURE(label);
    CHECK(catalog->attach("chat", {label, 0, 0, 0}, {}).error().code == Errc::invalid);
    CHECK(catalog->state("chat", label).error().code == Errc::invalid);
  }
  const auto message = [&](const std::string& label) {
    return catalog->attach("chat", {label, 0, 0, 0}, {}).error().message;
  };
  CHECK_THAT(message("top k"), contains("\"top k\", has 5 bytes, some of other letters"));
  CHECK_THAT(message("a\x1b[31m\u202E"), contains("\"a?[31m???\""));
  CHECK_THAT(message(std::string(33, 'x')),
             contains("\"" + std::string(33, 'x') + "\", has 33 bytes, allowed are 1…32"));
  CHECK_THAT(message(std::string(5'000, 'x')), contains("\"" + std::string(64, 'x') + "…\""));
}

TEST_CASE("the largest metadata of the smallest keys reads back", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  SessionRecord record = record_of("chat", 3);
  record.metadata.clear();
  for (int i = 0; i < 4'096; ++i) {
    record.metadata[std::to_string(1'000 + i)] = "";
  }
  need(catalog->write(record));
  CHECK(need(catalog->read("chat")).metadata == record.metadata);
}

TEST_CASE("saving a long chat after each turn writes little, and every turn reads back",
          "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  std::uint64_t written = 0;
  std::set<std::string> token_files;
  for (std::size_t count = 30'000; count < 60'000; count += 200) {
    need(catalog->write(record_of("chat", count)));
    REQUIRE(need(catalog->read("chat")).tokens == some_tokens(count));
    REQUIRE(catalog.listing(".tokens").size() == 1);
    written += fs::file_size(catalog.path("chat.session"));
    const std::string file = catalog.listing(".tokens").front();
    if (token_files.insert(file).second) written += fs::file_size(catalog.path(file));
  }
  CHECK(token_files.size() >= 3);
  CHECK(token_files.size() <= 5);
  CHECK(written < 150 * (30'000 * 4) / 3);  // a third of writing all of it every time
}

TEST_CASE("a truncated chat uses fewer tokens of its token file, and goes on from there",
          "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("chat", 10'000)));
  const std::vector<std::string> before = catalog.listing(".tokens");
  need(catalog->write(record_of("chat", 700)));
  CHECK(catalog.listing(".tokens") == before);
  CHECK(need(catalog->read("chat")).tokens == some_tokens(700));
  SessionRecord other = record_of("chat", 700);
  for (const std::int32_t token : some_tokens(300, 9)) other.tokens.push_back(token);
  need(catalog->write(other));
  CHECK(catalog.listing(".tokens") == before);
  CHECK(need(catalog->read("chat")).tokens == other.tokens);
  need(catalog->write(record_of("chat", 0)));
  CHECK(catalog.listing() == std::vector<std::string>{"chat.session"});
  CHECK(need(catalog->read("chat")).tokens.empty());
}

TEST_CASE("a thousand forks of a session of 8,000 tokens share one token file", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("parent", 4'500)));
  need(catalog->write(record_of("parent", 8'000)));
  need(catalog->attach("parent", {"window", 8'000, 77, 0}, some_bytes(10'000, 1)));
  const std::string old_file = catalog.listing(".tokens").front();
  const SessionRecord parent = need(catalog->read("parent"));
  for (int i = 0; i < 1'000; ++i) {
    SessionRecord child = record_of("fork " + std::to_string(i), 8'000);
    child.tokens.push_back(i);
    need(catalog->write_fork("parent", child));
  }
  const SessionRecord parent_now = need(catalog->read("parent"));
  CHECK(same_content(parent_now, parent));
  CHECK(parent_now.used_unix_ns == parent.used_unix_ns);
  const std::vector<std::string> token_files = catalog.listing(".tokens");
  REQUIRE(token_files.size() == 1'001);
  CHECK(std::find(token_files.begin(), token_files.end(), old_file) == token_files.end());
  std::set<ino_t> inodes;
  for (const char* end : {".tokens", ".state"}) {
    inodes.clear();
    for (const std::string& name : catalog.listing(end)) {
      struct stat status {};
      REQUIRE(::stat(catalog.path(name).c_str(), &status) == 0);
      CHECK(status.st_nlink == 1'001);
      inodes.insert(status.st_ino);
    }
    CHECK(inodes.size() == 1);
  }
  // One block for each session file; the token file and the attachment once.
  CHECK(need(catalog->used_bytes()) == 1'001 * 4 * kib + 32 * kib + 12 * kib);
  const SessionRecord child = need(catalog->read("fork 999"));
  CHECK(child.tokens.size() == 8'001);
  CHECK(child.tokens.back() == 999);
  CHECK(need(catalog->state("fork 7", "window")).bytes == some_bytes(10'000, 1));
}

TEST_CASE("forks and their parent go on by themselves", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("parent", 5'000)));
  need(catalog->attach("parent", {"a", 5'000, 1, 0}, some_bytes(10, 1)));
  need(catalog->write_fork("parent", record_of("child", 5'000)));
  need(catalog->write(record_of("parent", 20'000)));
  need(catalog->attach("parent", {"a", 20'000, 2, 0}, some_bytes(10, 2)));
  CHECK(need(catalog->read("child")).tokens == some_tokens(5'000));
  CHECK(need(catalog->state("child", "a")).bytes == some_bytes(10, 1));
  CHECK(need(catalog->state("child", "a")).record.path_hash == 1);
  need(catalog->remove("parent"));
  CHECK(need(catalog->read("child")).tokens == some_tokens(5'000));
  need(catalog->write(record_of("child", 5'100)));
  need(catalog->detach("child", "a"));
  CHECK(need(catalog->read("child")).tokens == some_tokens(5'100));
  need(catalog->remove("child"));
  CHECK(catalog.listing().empty());
}

TEST_CASE("a fork of a short parent stays in one file each", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("parent", 64)));
  need(catalog->write_fork("parent", record_of("child", 65)));
  CHECK(catalog.listing() == std::vector<std::string>{"child.session", "parent.session"});
  need(catalog->write(record_of("parent", 65)));
  need(catalog->write_fork("parent", record_of("second", 65)));
  CHECK(catalog.listing(".tokens").size() == 2);
  need(catalog->write_fork("parent", record_of("third", 9'000)));
  CHECK(need(catalog->read("third")).tokens == some_tokens(9'000));
  CHECK(need(catalog->read("second")).tokens == some_tokens(65));
}

TEST_CASE("a fork under a taken name, of other tokens or of nothing changes nothing", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("parent", 500)));
  need(catalog->write(record_of("other", 5, 2)));
  const std::vector<std::string> before = catalog.listing();
  CHECK(catalog->write_fork("parent", record_of("other", 500)).error().code == Errc::invalid);
  CHECK(catalog->write_fork("parent", record_of("parent", 500)).error().code == Errc::invalid);
  CHECK(catalog->write_fork("parent", record_of("child", 499)).error().code == Errc::invalid);
  CHECK(catalog->write_fork("parent", record_of("child", 500, 2)).error().code == Errc::invalid);
  CHECK(catalog->write_fork("none", record_of("child", 500)).error().code == Errc::missing);
  CHECK(catalog.listing() == before);
}

TEST_CASE("a renamed session has everything under its new name and nothing under the old",
          "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("old", 6'000)));
  need(catalog->attach("old", {"a", 6'000, 1, 0}, some_bytes(10, 1)));
  need(catalog->write(record_of("taken", 1)));
  const SessionRecord before = need(catalog->read("old"));
  const std::uint64_t used = need(catalog->used_bytes());
  CHECK(catalog->rename("old", "taken").error().code == Errc::invalid);
  CHECK(catalog->rename("old", "old").error().code == Errc::invalid);
  CHECK(catalog->rename("none", "new").error().code == Errc::missing);
  need(catalog->rename("old", "new/name"));
  SessionRecord expected = before;
  expected.name = "new/name";
  const SessionRecord after = need(catalog->read("new/name"));
  CHECK(same_content(after, expected));
  CHECK(after.used_unix_ns == before.used_unix_ns);
  CHECK(need(catalog->state("new/name", "a")).bytes == some_bytes(10, 1));
  CHECK(catalog->read("old").error().code == Errc::missing);
  CHECK(need(catalog->names()) == std::vector<std::string>{"new/name", "taken"});
  CHECK(need(catalog->used_bytes()) == used);
  CHECK(catalog.listing().size() == 4);
}

TEST_CASE("attachments are listed, replaced and detached", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("chat", 10)));
  CHECK(need(catalog->attachments("chat")).empty());
  need(catalog->attach("chat", {"window", 10, 0xABC, 0}, some_bytes(5'000, 1)));
  need(catalog->attach("chat", {"empty", 3, 4, 0}, {}));
  need(catalog->attach("chat", {"window", 9, 0xDEF, 0}, some_bytes(300, 2)));
  const auto listed = need(catalog->attachments("chat"));
  REQUIRE(listed.size() == 2);
  CHECK(listed[0].record.label == "empty");
  CHECK(listed[0].record.bytes == 0);
  CHECK(listed[1].record.label == "window");
  CHECK(listed[1].record.position == 9);
  CHECK(listed[1].record.path_hash == 0xDEF);
  CHECK(listed[1].record.bytes == 300);
  CHECK(listed[1].damage.empty());
  CHECK(need(catalog->state("chat", "window")).bytes == some_bytes(300, 2));
  CHECK(need(catalog->state("chat", "empty")).bytes.empty());
  CHECK(catalog->state("chat", "none").error().code == Errc::missing);
  CHECK(catalog->state("none", "window").error().code == Errc::missing);
  CHECK(catalog->attach("none", {"window", 1, 1, 0}, {}).error().code == Errc::missing);
  need(catalog->write(record_of("chat", 11)));
  CHECK(need(catalog->state("chat", "window")).bytes == some_bytes(300, 2));
  need(catalog->detach("chat", "window"));
  CHECK(catalog->detach("chat", "window").error().code == Errc::missing);
  CHECK(need(catalog->attachments("chat")).size() == 1);
}

TEST_CASE("a new session never inherits what an earlier one of its name has left", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("chat", 5'000)));
  need(catalog->attach("chat", {"a", 10, 1, 0}, some_bytes(10, 1)));
  fs::remove(catalog.path("chat.session"));  // as a process that was killed while it removed
  need(catalog->write(record_of("chat", 10)));
  CHECK(need(catalog->attachments("chat")).empty());
  CHECK(catalog->state("chat", "a").error().code == Errc::missing);
  CHECK(catalog.listing() == std::vector<std::string>{"chat.session"});
}

TEST_CASE("a sweep removes what killed writers left and nothing else", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("good", 5'000)));
  need(catalog->attach("good", {"a", 10, 1, 0}, some_bytes(10, 1)));
  need(catalog->write(record_of("bad", 5'000)));
  need(catalog->attach("bad", {"a", 10, 1, 0}, some_bytes(10, 1)));
  flip_byte(catalog.path("bad.session"), 70);
  const std::vector<std::string> before = catalog.listing();
  for (const char* name : {".tmp-0123", "good.00000000000000ff.tokens",
                           "good.00000000000000ff.a.state", "gone.00000000000000ff.tokens"}) {
    write_file(catalog.path(name), some_bytes(10, 1));
  }
  catalog->sweep();
  CHECK(catalog.listing() == before);
  for (const char* name : {"notes.txt", "gone.tokens", "a.b.c.d.state", "gone.00FF.tokens"}) {
    write_file(catalog.path(name), some_bytes(10, 1));
  }
  catalog->sweep();
  CHECK(catalog.listing().size() == before.size() + 4);
}

TEST_CASE("without a directory there are no sessions, and nothing is made by reading",
          "[catalog]") {
  const TempDir dir;
  const auto store = need(detail::Directory::create(dir / "s", Sharing::owner));
  const SessionFiles files = need(SessionFiles::open(store, Catalog::place(), false));
  CHECK(need(files.names()).empty());
  CHECK_FALSE(files.has("chat"));
  CHECK(files.read("chat").error().code == Errc::missing);
  CHECK(files.remove("chat").error().code == Errc::missing);
  CHECK(files.attachments("chat").error().code == Errc::missing);
  CHECK(files.write(record_of("chat", 1)).error().code == Errc::invalid);
  CHECK(files.rename("chat", "other").error().code == Errc::invalid);
  CHECK(need(files.used_bytes()) == 0);
  files.touch("chat");
  files.sweep();
  CHECK_FALSE(fs::exists(dir / "s/sessions"));
}

TEST_CASE("the directory and its files are as private as the store", "[catalog]") {
  const Sharing sharing = GENERATE(Sharing::owner, Sharing::group);
  const TempDir dir;
  const auto store = need(detail::Directory::create(dir / "s", sharing));
  SessionFiles::Place place = Catalog::place();
  place.sharing = sharing;
  const SessionFiles files = need(SessionFiles::open(store, place, true));
  need(files.write(record_of("chat", 5'000)));
  need(files.attach("chat", {"a", 1, 1, 0}, {}));
  const bool group = sharing == Sharing::group;
  struct stat status {};
  REQUIRE(::stat((dir / "s/sessions").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == (group ? 02770U : 0700U));
  for (const auto& entry : fs::directory_iterator(dir / "s/sessions")) {
    REQUIRE(::stat(entry.path().c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == (group ? 0660U : 0600U));
  }
  // A creator that was killed between the two calls that make the directory.
  REQUIRE(::chmod((dir / "s/sessions").c_str(), 0700) == 0);
  const SessionFiles again = need(SessionFiles::open(store, place, true));
  CHECK(need(again.read("chat")).tokens.size() == 5'000);
  REQUIRE(::chmod((dir / "s/sessions").c_str(), 0777) == 0);
  CHECK(SessionFiles::open(store, place, true).error().code == Errc::invalid);
  CHECK(SessionFiles::open(store, place, false).error().code == Errc::invalid);
}

TEST_CASE("a full share refuses writes with words before anything changes", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s", 64 * kib);
  need(catalog->write(record_of("chat", 10'000)));  // 4 KiB and 40 KiB
  need(catalog->attach("chat", {"a", 1, 1, 0}, some_bytes(8'000, 1)));
  CHECK(need(catalog->used_bytes()) == 52 * kib);
  const std::vector<std::string> before = catalog.listing();
  const auto refused = [&](const Result<void>& result) {
    REQUIRE_FALSE(result);
    CHECK(result.error().code == Errc::full);
    CHECK_THAT(result.error().message,
               contains("52.0 KiB") && contains("64.0 KiB") && contains("esker session rm"));
    CHECK(catalog.listing() == before);
  };
  refused(catalog->write(record_of("second", 4'000)));
  refused(catalog->attach("chat", {"b", 1, 1, 0}, some_bytes(13'000, 1)));
  refused(catalog->attach("chat", {"a", 1, 1, 0}, some_bytes(25'000, 1)));
  refused(catalog->write_fork("chat", record_of("child", 25'000)));
  refused(catalog->write(record_of("chat", 17'000)));
  // What replaces something counts by its growth.
  need(catalog->attach("chat", {"a", 1, 1, 0}, some_bytes(20'000, 2)));
  need(catalog->write(record_of("chat", 9'000, 2)));
  need(catalog->write(record_of("chat", 10'000)));
  CHECK(need(catalog->used_bytes()) == 64 * kib);
  need(catalog->write(record_of("chat", 10'010)));
  need(catalog->rename("chat", "name"));
  CHECK(catalog->write(record_of("second", 1)).error().code == Errc::full);
  need(catalog->detach("name", "a"));
  need(catalog->write(record_of("second", 1)));
}

TEST_CASE("leftovers make room instead of refusing a write", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s", 64 * kib);
  write_file(catalog.path(".tmp-1"), some_bytes(60'000, 1));
  CHECK(need(catalog->used_bytes()) == 60 * kib);
  need(catalog->write(record_of("chat", 4'000)));
  CHECK(catalog.listing() == std::vector<std::string>{"chat.session"});
}

TEST_CASE("on a full disk a write fails with words and the session stays as it was", "[catalog]") {
  if (!may_mount()) return;
  const SmallDisk disk(1 * mib);
  const Catalog catalog(disk / "s");
  need(catalog->write(record_of("chat", 6'000)));
  need(catalog->attach("chat", {"a", 1, 1, 0}, some_bytes(5'000, 1)));
  const std::uint64_t junk = disk.free_bytes() - 8 * kib;
  write_file(disk / "junk", std::vector<std::byte>(junk));
  const std::vector<std::string> before = catalog.listing();
  for (int i = 0; i < 3; ++i) {
    const Result<void> refused = catalog->write(record_of("chat", 60'000));
    CHECK(refused.error().os_error == ENOSPC);
    CHECK_THAT(refused.error().message, contains(catalog.path("chat.")));
    CHECK_THAT(refused.error().message, contains("make room"));
    CHECK_THAT(refused.error().message, !contains(".tmp"));
    CHECK(catalog->write(record_of("other", 4'000)).error().code == Errc::io);
    CHECK(catalog->attach("chat", {"a", 1, 1, 0}, some_bytes(50'000, 2)).error().code == Errc::io);
    CHECK(catalog->write_fork("chat", record_of("child", 60'000)).error().code == Errc::io);
  }
  CHECK(catalog.listing() == before);
  CHECK(need(catalog->read("chat")).tokens == some_tokens(6'000));
  CHECK(need(catalog->state("chat", "a")).bytes == some_bytes(5'000, 1));
  need(catalog->remove("chat"));
  CHECK(disk.free_bytes() >= 36 * kib);
}

TEST_CASE("a session is over when it was not used for longer than its time to live", "[catalog]") {
  const std::uint64_t second = 1'000'000'000;
  SessionRecord record;
  record.used_unix_ns = 1'000 * second;
  CHECK_FALSE(record.expired(UINT64_MAX));
  record.time_to_live_s = 60;
  CHECK_FALSE(record.expired(0));
  CHECK_FALSE(record.expired(30 * second));
  CHECK_FALSE(record.expired(1'000 * second));
  CHECK_FALSE(record.expired(1'060 * second));
  CHECK(record.expired(1'061 * second));
  record.time_to_live_s = UINT64_MAX;
  CHECK_FALSE(record.expired(UINT64_MAX));
}

TEST_CASE("a touch sets the moment of use and nothing else", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s");
  need(catalog->write(record_of("chat", 5)));
  const fs::path file = catalog.path("chat.session");
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(48));
  const SessionRecord before = need(catalog->read("chat"));
  catalog->touch("chat");
  catalog->touch("none");
  const SessionRecord after = need(catalog->read("chat"));
  CHECK(after.used_unix_ns > before.used_unix_ns + 47 * 3'600 * 1'000'000'000ULL);
  CHECK(same_content(before, after));
}

TEST_CASE("where a file cannot be linked it is copied, within the share", "[catalog]") {
  const TempDir dir;
  const Catalog catalog(dir / "s", 1 * mib);
  const detail::SessionFiles::Place place = Catalog::place(1 * mib);
  const auto directory = need(detail::Directory::open(catalog.path()));
  const detail::SessionArea area{directory, place};
  const std::vector<std::byte> bytes = some_bytes(600'000, 3);
  const auto file = need(directory.create_file("from", Sharing::owner));
  need(file.write_at(0, bytes));
  CHECK(detail::copy_part(area, "from", "to").error().code == Errc::full);
  fs::resize_file(catalog.path("from"), 400'000);
  need(detail::copy_part(area, "from", "to"));
  CHECK(read_file(catalog.path("to")) ==
        std::vector<std::byte>(bytes.begin(), bytes.begin() + 400'000));
  CHECK(catalog.listing() == std::vector<std::string>{"from", "to"});
}
