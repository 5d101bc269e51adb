#include "catch.hpp"

#include <chrono>
#include <filesystem>
#include <thread>

#include "snapshot_support.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

std::vector<std::byte> some_bytes(std::size_t count, unsigned seed) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + seed);
  return bytes;
}

/// A session of a namespace with everything that one can have.
void full_session(Store& store, const std::string& name, const TokenList& tokens,
                  std::string_view name_space = {}) {
  SessionOptions options;
  options.name_space = name_space;
  options.metadata = {{"user", "somebody"}, {"title", "of nothing"}};
  options.priority = -3;
  options.time_to_live_s = 100'000;
  Session session = need(Session::create(store, name, options));
  talk(session, tokens, name_space);
  need(session.save());
  need(session.attach("window", some_bytes(5'000, 1)));
  need(session.attach("sampler", some_bytes(3, 2)));
}

void check_full_session(Store& store, const std::string& name, const TokenList& tokens,
                        std::string_view name_space = {}) {
  const Session session = need(Session::resume(store, name));
  CHECK(TokenList(session.token_ids().begin(), session.token_ids().end()) == tokens);
  CHECK(session.reusable() == tokens.size());
  CHECK(wrong_session(session, name_space) == "");
  CHECK(need(session.attachment("window")) == some_bytes(5'000, 1));
  CHECK(need(session.attachment("sampler")) == some_bytes(3, 2));
  const SessionInfo info = need(session.info());
  CHECK(info.name_space == name_space);
  CHECK(info.metadata.at("user") == "somebody");
  CHECK(info.priority == -3);
  CHECK(info.time_to_live_s == 100'000);
}

}  // namespace

TEST_CASE("sessions travel with their tokens, their metadata and the engine's state",
          "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  const TokenList tokens = prompt(75, 1);
  full_session(from, "chat", tokens);
  full_session(from, "of a tenant", prompt(40, 2), "tenant-of-renown");
  static_cast<void>(saved_session(from, "empty", {}));
  const auto written = need(export_snapshot(from, dir / "s.esnap"));
  CHECK(written.sessions == 3);
  const auto contents = need(need(Snapshot::open(dir / "s.esnap")).contents());
  REQUIRE(contents.sessions.size() == 3);
  CHECK(contents.sessions[0].name == "chat");
  CHECK(contents.sessions[0].tokens == 75);
  CHECK(contents.sessions[0].stored_tokens == 75);
  CHECK(contents.sessions[0].attachments == 2);

  Store to = make_store(dir / "to");
  const auto stored = import_file(to, dir / "s.esnap");
  CHECK(stored.sessions == 3);
  check_full_session(to, "chat", tokens);
  check_full_session(to, "of a tenant", prompt(40, 2), "tenant-of-renown");
  CHECK(need(Session::resume(to, "empty")).tokens() == 0);
  CHECK(need(to.verify()).damage.empty());

  const auto again = import_file(to, dir / "s.esnap");
  CHECK(again.sessions == 0);
  CHECK(again.present_sessions == 3);
  ImportOptions without = of_tenants();
  without.sessions = false;
  Store third = make_store(dir / "third");
  CHECK(import_file(third, dir / "s.esnap", without).sessions == 0);
  CHECK(need(Session::list(third)).empty());
}

TEST_CASE("state that no longer belongs to a session's tokens stays behind", "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  Session session = saved_session(from, "chat", prompt(50, 1));
  need(session.attach("old", some_bytes(10, 1)));
  need(session.truncate(30));
  need(session.save());
  need(session.attach("new", some_bytes(10, 2)));
  talk(session, prompt(10, 3));
  need(session.save());
  need(export_snapshot(from, dir / "s.esnap"));
  const auto contents = need(need(Snapshot::open(dir / "s.esnap")).contents());
  CHECK(contents.sessions[0].attachments == 1);
  Store to = make_store(dir / "to");
  import_file(to, dir / "s.esnap");
  CHECK(need(need(Session::resume(to, "chat")).attachment("new")) == some_bytes(10, 2));
}

TEST_CASE("a session of the same name and other tokens stays, unless it is to be replaced",
          "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  full_session(from, "chat", prompt(75, 1));
  need(export_snapshot(from, dir / "s.esnap"));
  Store to = make_store(dir / "to");
  Session old = saved_session(to, "chat", prompt(20, 5));
  need(old.attach("window", some_bytes(9, 9)));
  need(old.attach("other", some_bytes(9, 9)));
  const auto skipped = import_file(to, dir / "s.esnap");
  CHECK(skipped.sessions == 0);
  CHECK(skipped.skipped_sessions == std::vector<std::string>{"chat"});
  CHECK(need(Session::resume(to, "chat")).tokens() == 20);
  ImportOptions replace = of_tenants();
  replace.replace_sessions = true;
  CHECK(import_file(to, dir / "s.esnap", replace).sessions == 1);
  check_full_session(to, "chat", prompt(75, 1));
  CHECK(need(Session::resume(to, "chat")).attachment("other").error().code == Errc::missing);
  // Whoever still has the old one open is told, and loses nothing silently.
  talk(old, prompt(5, 6));
  CHECK(old.save().error().code == Errc::missing);
}

TEST_CASE("a session that goes back to what it was tells whoever has it open", "[snapshot]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  Session session = saved_session(store, "chat", prompt(40, 1));
  need(export_snapshot(store, dir / "s.esnap"));
  talk(session, prompt(10, 2));
  need(session.save());
  ImportOptions replace;
  replace.replace_sessions = true;
  CHECK(import_file(store, dir / "s.esnap", replace).sessions == 1);
  talk(session, prompt(10, 3));
  CHECK(session.save().error().code == Errc::busy);
  CHECK(need(Session::resume(store, "chat")).tokens() == 40);
}

TEST_CASE("a kept session is kept where it arrives", "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  {
    Session session = saved_session(from, "chat", prompt(160, 1));
    need(session.keep());
  }
  need(export_snapshot(from, dir / "s.esnap"));
  Store to = make_store(dir / "to", small_geometry(), small_options(1 * mib));
  import_file(to, dir / "s.esnap");
  for (std::uint64_t seed = 100; seed < 180; ++seed) put(to, prompt(160, seed));
  REQUIRE(to.stats().counters.evicted_blocks > 0);
  const SessionInfo info = need(Session::describe(to, "chat"));
  CHECK(info.kept);
  CHECK(info.kept_tokens == 160);
  CHECK(get(to, prompt(160, 1)) == 160);
}

TEST_CASE("what is expired or damaged is left out of an export of everything", "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  SessionOptions brief;
  brief.time_to_live_s = 1;
  need(need(Session::create(from, "brief", brief)).save());
  saved_session(from, "good", prompt(40, 1));
  saved_session(from, "bad", prompt(40, 2));
  bool flipped = false;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "from/sessions")) {
    if (!entry.path().filename().string().starts_with("bad")) continue;
    flip_byte(entry.path().string(), 100);
    flipped = true;
  }
  REQUIRE(flipped);
  while (!need(Session::describe(from, "brief")).expired) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const auto written = need(export_snapshot(from, dir / "s.esnap"));
  CHECK(written.sessions == 1);
  CHECK(written.damaged_sessions == 1);
  ExportOptions named;
  named.replace = true;
  named.sessions = {"bad"};
  CHECK(export_snapshot(from, dir / "s.esnap", named).error().code == Errc::corrupt);
  named.sessions = {"brief"};
  CHECK(export_snapshot(from, dir / "s.esnap", named).error().code == Errc::missing);
}

TEST_CASE("a tenant's name is nowhere in a snapshot, and who knows it finds the paths again",
          "[snapshot]") {
  const TempDir dir;
  const Prompts prompts;
  Store from = make_store(dir / "from");
  prompts.put_into(from);
  full_session(from, "chat", prompt(40, 2), "tenant-of-renown");
  ExportOptions raw;
  raw.compression = Compression::raw;
  const auto written = need(export_snapshot(from, dir / "files", raw));
  std::filesystem::create_directory(dir / "only");
  std::filesystem::rename(dir / "files", dir / "only/s.esnap");
  const auto bytes_of = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  CHECK(files_with(dir / "only", bytes_of("tenant")) == 0);
  CHECK(files_with(dir / "only", bytes_of("renown")) == 0);
  CHECK(files_with(dir / "only", bytes_of("lora=0011")) == 1);

  Store to = make_store(dir / "to");
  const auto stored = import_file(to, dir / "only/s.esnap", {});
  CHECK(stored.unnamed_namespaces == 2);
  CHECK(stored.unreachable_tokens > 0);
  CHECK(stored.reachable_tokens + stored.unreachable_tokens == written.tokens);
  CHECK(stored.unreachable_sessions == 1);
  CHECK(stored.sessions == 0);
  for (const auto& [tokens, name_space] : prompts.all) {
    const bool open = name_space.empty() || name_space == "lora=0011";
    CHECK(get(to, tokens, name_space) == (open ? tokens.size() : 0));
  }
  ImportOptions one;
  one.namespaces = {"somebody else", "tenant-of-renown"};
  const auto more = import_file(to, dir / "only/s.esnap", one);
  CHECK(more.unnamed_namespaces == 1);
  CHECK(more.unreachable_tokens == 64);
  CHECK(more.sessions == 1);
  CHECK(import_file(to, dir / "only/s.esnap").unreachable_tokens == 0);
  prompts.check(to);
}

TEST_CASE("two snapshots of one store name a tenant differently", "[snapshot]") {
  const TempDir dir;
  Store from = make_store(dir / "from");
  put(from, prompt(40, 1), "tenant-of-renown");
  need(export_snapshot(from, dir / "a.esnap"));
  need(export_snapshot(from, dir / "b.esnap"));
  const auto a = need(need(Snapshot::open(dir / "a.esnap")).contents());
  const auto b = need(need(Snapshot::open(dir / "b.esnap")).contents());
  CHECK_FALSE(a.namespaces[0].named);
  CHECK(a.namespaces[0].text.size() == 32);
  CHECK(a.namespaces[0].text != b.namespaces[0].text);
  CHECK(a.paths[0].path != b.paths[0].path);
  const Snapshot snapshot = need(Snapshot::open(dir / "a.esnap"));
  CHECK(need(snapshot.find_namespace("tenant-of-renown")) == 0);
  CHECK(snapshot.find_namespace("other-tenant").error().code == Errc::missing);
  CHECK(snapshot.find_namespace("").error().code == Errc::missing);
}
