#include <sys/stat.h>
#include <filesystem>
#include <fstream>
#include <set>

#include "catch.hpp"
#include "support/disk.hpp"
#include "support/process.hpp"
#include "support/sessions.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace fs = std::filesystem;

namespace {

/// Appends and saves until it is killed; says how many tokens are saved after each round.
int talk_until_killed(const Arguments& arguments) {
  Store store = need(Store::open(arguments.at(0)));
  Session session = need(Session::resume(store, "alice"));
  const TokenList words = prompt(4000, 77);
  for (std::uint32_t at = session.tokens(); at < words.size(); ++at) {
    talk(session, Tokens(words).subspan(at, 1));
    need(session.save());
    say(std::to_string(session.tokens()));
  }
  return 0;
}
const RoleName talker("talk_until_killed", &talk_until_killed);

int leave_a_tail(const Arguments& arguments) {
  Store store = need(Store::open(arguments.at(0)));
  Session session = need(Session::resume(store, "alice"));
  talk(session, prompt(20, 99));
  say("ready");
  listen();
  return 0;
}
const RoleName leaver("leave_a_tail", &leave_a_tail);

SessionInfo described(const Store& store, const std::string& name) {
  return need(Session::describe(store, name));
}

}  // namespace

TEST_CASE("every token that was saved survives SIGKILL at any moment", "[session][kill]") {
  const TempDir dir;
  {
    Store store = make_store(dir / "store");
    need(Session::create(store, "alice"));
  }
  std::uint32_t acknowledged = 0;
  for (int round = 0; round < 12; ++round) {
    Child child("talk_until_killed", {dir / "store"});
    for (int i = 0; i <= round % 4; ++i)
      acknowledged = static_cast<std::uint32_t>(std::stoul(child.hear()));
    sleep_ms(static_cast<unsigned>(round));
    child.kill();
    Store store = need(Store::open(dir / "store"));
    Session session = need(Session::resume(store, "alice"));
    REQUIRE(session.tokens() >= acknowledged);
    REQUIRE(session.reusable() == session.tokens());
    REQUIRE(wrong_session(session).empty());
    acknowledged = session.tokens();
  }
}

TEST_CASE("a killed handle takes only its private tail with it", "[session][kill]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  need(Session::create(store, "alice"));
  Child child("leave_a_tail", {dir / "store"});
  child.hear();
  CHECK(store.stats().blocks_reserved == 1);
  child.kill();
  need(store.reap());
  CHECK(store.stats().blocks_reserved == 0);
  CHECK(need(Session::resume(store, "alice")).tokens() == 0);
  CHECK(get(store, prompt(20, 99)) == 16);
}

TEST_CASE("who saves over another handle's turn is told so", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  saved_session(store, "alice", prompt(20, 1));
  Session one = need(Session::resume(store, "alice"));
  Session two = need(Session::resume(store, "alice"));
  talk(one, prompt(5, 2));
  talk(two, prompt(6, 3));
  need(one.save());
  auto refused = two.save();
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::busy);
  CHECK(need(Session::resume(store, "alice")).tokens() == 25);
  // Nothing is lost: it can be kept as a branch.
  Session kept = need(two.fork("alice, second thoughts"));
  need(kept.save());
  CHECK(need(Session::resume(store, "alice, second thoughts")).reusable() == 26);
}

TEST_CASE("a handle never saves over another session that has got its name", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  saved_session(store, "alice", prompt(20, 1));
  Session old = need(Session::resume(store, "alice"));

  SECTION("when its own was removed") {
    need(Session::remove(store, std::vector<std::string>{"alice"}));
    saved_session(store, "alice", prompt(64, 2));
  }
  SECTION("when its own was renamed") {
    need(need(Session::resume(store, "alice")).rename("bob"));
    need(saved_session(store, "carol", prompt(64, 2)).rename("alice"));
    CHECK(need(Session::resume(store, "bob")).tokens() == 20);
  }
  CHECK(old.save().error().code == Errc::missing);
  CHECK(old.keep().error().code == Errc::missing);
  CHECK(old.attach("state", {}).error().code == Errc::missing);
  CHECK(old.detach("state").error().code == Errc::missing);
  CHECK(need(Session::resume(store, "alice")).tokens() == 64);
}

TEST_CASE("a session that was removed under its handle can be kept under another name",
          "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Session chat = saved_session(store, "alice", prompt(40, 1));
  talk(chat, prompt(3, 2));
  need(Session::remove(store, std::vector<std::string>{"alice"}));
  CHECK(wrong_session(chat).empty());
  CHECK(chat.save().error().code == Errc::missing);
  Session kept = need(chat.fork("alice again"));
  CHECK(get(store, prompt(40, 1)) == 0);
  CHECK(need(kept.append({})).missing().empty());
  need(kept.save());
  CHECK(kept.reusable() == 43);
  CHECK(wrong_session(kept).empty());
  CHECK(need(Session::resume(store, "alice again")).reusable() == 43);
  fs::remove_all(dir / "store/sessions");
  need(need(kept.fork("and again")).save());
  CHECK(need(Session::list(store)).size() == 1);
}

TEST_CASE("a session with a damaged block is saved with its tokens, and asks for the rows",
          "[session]") {
  const TempDir dir;
  {
    Store store = make_store(dir / "store");
    saved_session(store, "alice", prompt(64, 9));
  }
  const TokenList words = prompt(64, 9);
  const DiskBlock block = find_block(dir / "store", words, 16);
  flip_byte(block.file, row_offset(block, 16, 0, Plane::key, 3));
  Store store = need(Store::open(dir / "store"));
  Session chat = need(Session::resume(store, "alice"));
  talk(chat, prompt(5, 10));
  CHECK(chat.view(0, Plane::key).error().code == Errc::corrupt);
  need(chat.save());
  Session again = need(Session::resume(store, "alice"));
  CHECK(again.tokens() == 69);
  CHECK(again.reusable() == 16);
  talk(again, {});
  CHECK(again.reusable() == 69);
  CHECK(wrong_session(again).empty());
}

TEST_CASE("a branch from an earlier message leaves what is saved of the chat alone", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  {
    saved_session(store, "alice", prompt(100, 1));
    Session chat = need(Session::resume(store, "alice"));
    need(chat.truncate(10));
    need(chat.set("key", "not saved"));
    Session branch = need(chat.fork("branch"));
    CHECK(branch.tokens() == 10);
    CHECK(wrong_session(branch).empty());
  }
  CHECK(need(Session::resume(store, "alice")).tokens() == 100);
  CHECK(described(store, "alice").metadata.empty());
  CHECK(need(Session::resume(store, "branch")).tokens() == 10);
}

TEST_CASE("one thousand branches of 8,000 tokens share one token file and cost no data",
          "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store", small_geometry(), small_options(512 * mib));
  Session trunk = saved_session(store, "trunk", prompt(8000, 4));
  const std::uint64_t blocks = store.stats().blocks_ready;
  for (int i = 0; i < 1000; ++i) need(trunk.fork("branch " + std::to_string(i)));
  CHECK(store.stats().blocks_ready == blocks);
  CHECK(store.stats().blocks_reserved == 0);
  std::set<ino_t> token_files;
  std::uint64_t tail_bytes = 0;
  for (const auto& entry : fs::directory_iterator(dir / "store/sessions")) {
    struct stat status {};
    REQUIRE(stat(entry.path().c_str(), &status) == 0);
    if (entry.path().extension() == ".tokens") {
      token_files.insert(status.st_ino);
    } else {
      tail_bytes += static_cast<std::uint64_t>(status.st_size);
    }
  }
  CHECK(token_files.size() == 1);
  CHECK(tail_bytes < std::uint64_t{1001} * 1024);
  Session one = need(Session::resume(store, "branch 617"));
  CHECK(one.reusable() == 8000);
  talk(one, prompt(20, 5));
  need(one.save());
  CHECK(need(Session::resume(store, "branch 617")).reusable() == 8020);
  CHECK(need(Session::resume(store, "branch 618")).reusable() == 8000);
}

TEST_CASE("a damaged session is reported by name and hides no other", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  for (const char* name : {"alice", "bob", "carol"}) saved_session(store, name, prompt(20, 6));
  flip_byte(dir / "store/sessions/bob.session", 40);
  const std::vector<SessionInfo> all = need(Session::list(store));
  REQUIRE(all.size() == 3);
  CHECK(all[0].damage.empty());
  CHECK(all[1].name == "bob");
  CHECK(all[1].damage.find("bob.session") != std::string::npos);
  CHECK(all[2].damage.empty());
  CHECK(all[2].reusable_tokens == 20);
  auto broken = Session::resume(store, "bob");
  REQUIRE(!broken);
  CHECK(broken.error().code == Errc::corrupt);
  const VerifyReport report = need(store.verify());
  CHECK(report.sessions == 2);
  REQUIRE(report.damage.size() == 1);
  CHECK(report.damage[0].what.find("bob.session") != std::string::npos);
  need(Session::remove(store, std::vector<std::string>{"bob"}));
  CHECK(need(Session::list(store)).size() == 2);
  CHECK(need(store.verify()).damage.empty());
  write_file(dir / "store/sessions/a b.session", std::vector<std::byte>(100));
  const std::vector<SessionInfo> listed = need(Session::list(store));
  REQUIRE(listed.size() == 3);
  CHECK(!listed[0].damage.empty());
  need(Session::remove(store, std::vector<std::string>{listed[0].name}));
  CHECK(need(Session::list(store)).size() == 2);
  CHECK(need(Session::resume(store, "alice")).reusable() == 20);
}

TEST_CASE("a session is renamed with all that it has", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Session chat = saved_session(store, "alice", prompt(20, 13));
  const std::vector<std::byte> state(100, std::byte{7});
  need(chat.attach("sampler", state));
  saved_session(store, "bob", prompt(20, 14));
  CHECK(chat.rename("bob").error().code == Errc::invalid);
  need(chat.rename("carol/2: Grüße"));
  CHECK(chat.name() == "carol/2: Grüße");
  CHECK(Session::resume(store, "alice").error().code == Errc::missing);
  talk(chat, prompt(3, 15));
  need(chat.save());
  Session again = need(Session::resume(store, "carol/2: Grüße"));
  CHECK(again.reusable() == 23);
  CHECK(need(again.attachment("sampler")) == state);
}

TEST_CASE("a name that cannot be one is refused", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  for (const std::string& name : {std::string(), std::string(65, 'a'), std::string("a\nb"),
                                  std::string("\xFF\xFE"), std::string("a\0b", 3)}) {
    CHECK(Session::create(store, name).error().code == Errc::invalid);
  }
  CHECK(Session::resume(store, "nobody").error().code == Errc::missing);
  need(Session::create(store, std::string(64, 'a')));
  need(Session::create(store, "../../etc/passwd"));
  CHECK(Session::create(store, "../../etc/passwd").error().code == Errc::invalid);
  CHECK(need(Session::list(store)).size() == 2);
}

TEST_CASE("a session whose time to live is over can only be removed", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  SessionOptions options;
  options.time_to_live_s = 60;
  need(Session::create(store, "alice", options));
  need(Session::resume(store, "alice"));
  const auto old = fs::last_write_time(dir / "store/sessions/alice.session");
  fs::last_write_time(dir / "store/sessions/alice.session", old - std::chrono::seconds(100));
  CHECK(Session::resume(store, "alice").error().code == Errc::missing);
  CHECK(described(store, "alice").expired);
  need(Session::remove(store, std::vector<std::string>{"alice"}));
  CHECK(need(Session::list(store)).empty());
}

TEST_CASE("metadata, priority and time to live come back as they were saved", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  SessionOptions options;
  options.metadata = {{"user", "alice"}, {"model", "smol"}};
  options.priority = -3;
  Session chat = need(Session::create(store, "alice", options));
  need(chat.set("title", "Grüße"));
  need(chat.set("model", ""));
  chat.set_time_to_live(3600);
  CHECK(chat.set("", "x").error().code == Errc::invalid);
  CHECK(chat.set("a", std::string("b\x01")).error().code == Errc::invalid);
  CHECK(chat.set("big", std::string(20'000, 'x')).error().code == Errc::invalid);
  CHECK(described(store, "alice").metadata == options.metadata);
  need(chat.save());
  const SessionInfo info = described(store, "alice");
  CHECK(info.metadata == SessionMetadata{{"user", "alice"}, {"title", "Grüße"}});
  CHECK(info.priority == -3);
  CHECK(info.time_to_live_s == 3600);
  CHECK(info.revision == 2);
  CHECK(info.created_unix_ns > 0);
  CHECK(info.used_unix_ns >= info.created_unix_ns / 2);
}

TEST_CASE("engine state is offered only for exactly the tokens it belongs to", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Session chat = need(Session::create(store, "alice"));
  talk(chat, prompt(40, 16));
  std::vector<std::byte> state(10'000);
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = static_cast<std::byte>(i * 7);
  need(chat.attach("window", state));
  need(chat.save());
  CHECK(need(chat.attachment("window")) == state);
  CHECK(chat.attachment("other").error().code == Errc::missing);
  CHECK(chat.attach("not a label", state).error().code == Errc::invalid);

  SECTION("it stays while the session grows") {
    talk(chat, prompt(9, 17));
    need(chat.save());
    Session again = need(Session::resume(store, "alice"));
    CHECK(need(again.attachment("window")) == state);
    const SessionInfo info = need(again.info());
    REQUIRE(info.attachments.size() == 1);
    CHECK(info.attachments[0].position == 40);
    CHECK(info.attachments[0].available);
  }
  SECTION("not before its position, nor behind other tokens") {
    need(chat.truncate(39));
    CHECK(chat.attachment("window").error().code == Errc::missing);
    talk(chat, prompt(5, 18));
    CHECK(chat.attachment("window").error().code == Errc::missing);
  }
  SECTION("not when a part of the prefix is gone") {
    need(chat.truncate(0));
    chat = need(Session::create(store, "bob"));
    need(store.evict(store.geometry().block_bytes()));
    Session again = need(Session::resume(store, "alice"));
    CHECK(again.reusable() == 16);
    auto gone = again.attachment("window");
    REQUIRE(!gone);
    CHECK(gone.error().code == Errc::missing);
    CHECK(gone.error().message.find("40") != std::string::npos);
  }
  SECTION("a branch has it too, and a damaged one is named") {
    Session branch = need(chat.fork("branch"));
    CHECK(need(branch.attachment("window")) == state);
    std::string file;
    for (const auto& entry : fs::directory_iterator(dir / "store/sessions")) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("alice.") && name.ends_with(".window.state")) file = entry.path();
    }
    fs::rename(file, dir / "copy");  // the branch has the same file
    fs::copy_file(dir / "copy", file);
    flip_byte(file, 5000);
    const SessionInfo info = described(store, "alice");
    REQUIRE(info.attachments.size() == 1);
    CHECK_FALSE(info.attachments[0].available);
    CHECK(info.attachments[0].damage.find("window") != std::string::npos);
    CHECK(need(store.verify()).damage.size() == 1);
    auto damaged = chat.attachment("window");
    REQUIRE(!damaged);
    CHECK(damaged.error().code == Errc::corrupt);
    CHECK(damaged.error().message.find("window") != std::string::npos);
    CHECK(need(branch.attachment("window")) == state);
    need(chat.detach("window"));
    CHECK(chat.attachment("window").error().code == Errc::missing);
  }
}

TEST_CASE("the list of paths tells which sessions end on each", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Session alice = saved_session(store, "alice", prompt(48, 19));
  Session bob = need(alice.fork("bob"));
  talk(bob, prompt(20, 20));
  need(bob.save());
  put(store, prompt(30, 21));
  const std::vector<PathInfo> paths = need(store.paths());
  REQUIRE(paths.size() == 2);
  for (const PathInfo& path : paths) {
    if (path.tokens == 30) CHECK(path.sessions.empty());
    if (path.tokens == 68) CHECK(path.sessions == std::vector<std::string>{"alice", "bob"});
  }
}
