#include <filesystem>

#include "catch.hpp"
#include "support/disk.hpp"
#include "support/sessions.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace fs = std::filesystem;

TEST_CASE("a live session stores again what was taken out of the store under it", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  for (const bool growing : {false, true}) {
    const TokenList words = prompt(growing ? 70 : 64, growing ? 5 : 6);
    Session chat = saved_session(store, growing ? "growing" : "saving", words);
    talk(chat, prompt(10, 7));
    const std::uint64_t path = path_of(store, words);
    need(store.remove(std::vector<std::uint64_t>{path}));
    CHECK(get(store, words) == 0);
    if (growing) {
      Reservation room = need(chat.append(prompt(3, 8)));
      CHECK(room.missing() == TokenRange{80, 83});
      room = Reservation();
      talk(chat, prompt(3, 8));
    }
    need(chat.save());
    CHECK(chat.reusable() == chat.tokens());
    CHECK(wrong_session(chat).empty());
    CHECK(get(store, words) == words.size());
  }
  CHECK(need(store.verify()).damage.empty());
}

TEST_CASE("removing a session wipes what only it used", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  const TokenList shared = prompt(48, 7);
  saved_session(store, "alice", fork_at(shared, 48, prompt(40, 8)));
  saved_session(store, "bob", fork_at(shared, 48, prompt(40, 9)));
  const TokenList alice = fork_at(shared, 48, prompt(40, 8));
  const auto secret = Content(alice).rows(store.geometry(), 0, Plane::key, {60, 61});
  const auto common = Content(alice).rows(store.geometry(), 0, Plane::key, {20, 21});
  CHECK(files_with(dir / "store", secret) == 1);
  const Freed planned = need(Session::remove(store, std::vector<std::string>{"alice"}, true));
  CHECK(planned.blocks == 3);
  CHECK(planned.shared_blocks == 3);
  CHECK(need(Session::list(store)).size() == 2);
  const Freed freed = need(Session::remove(store, std::vector<std::string>{"alice"}));
  CHECK(freed.blocks == 3);
  CHECK(freed.shared_blocks == 3);
  CHECK(freed.paths == 1);
  CHECK(files_with(dir / "store", secret) == 0);
  CHECK(files_with(dir / "store", common) == 1);
  const auto ids = std::as_bytes(Tokens(alice).subspan(60, 8));
  CHECK(files_with(dir / "store", ids) == 0);
  CHECK(get(store, alice) == 48);
  CHECK(need(Session::resume(store, "bob")).reusable() == 88);
  CHECK(Session::resume(store, "alice").error().code == Errc::missing);
}

TEST_CASE("removing a session also wipes the turns that it had dropped", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Session chat = saved_session(store, "alice", prompt(64, 30));
  for (std::uint64_t turn = 0; turn < 5; ++turn) {
    need(chat.truncate(20));
    talk(chat, prompt(30, 31 + turn));
  }
  need(chat.truncate(16));
  need(chat.save());
  Session branch = need(chat.fork("branch"));
  talk(branch, prompt(40, 40));
  need(branch.save());
  CHECK(get(store, prompt(64, 30)) == 64);
  need(Session::remove(store, std::vector<std::string>{"alice"}));
  CHECK(get(store, prompt(64, 30)) == 16);
  CHECK(need(store.paths()).size() == 1);
  CHECK(branch.reusable() == 56);
  need(Session::remove(store, std::vector<std::string>{"branch"}));
  CHECK(need(store.paths()).empty());
}

TEST_CASE("removing a session leaves a longer block that somebody else has put in its place",
          "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  for (std::uint32_t rest = 1; rest < 16; ++rest) {
    const std::string name = "chat " + std::to_string(rest);
    const TokenList words = prompt(32 + rest, 200 + rest);
    saved_session(store, name, words);
    const TokenList longer = fork_at(words, 32 + rest, prompt(9, 300));
    put(store, longer);
    need(Session::remove(store, std::vector<std::string>{name}));
    CHECK(get(store, longer) == longer.size());
  }
}

TEST_CASE("removing a chat leaves nothing of it, wherever its turns ended", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  for (const bool kept : {false, true}) {
    for (std::uint32_t rest = 1; rest < 16; ++rest) {
      Session chat = saved_session(store, "chat", prompt(32 + rest, 400 + rest));
      if (kept) need(chat.keep());
      for (std::uint64_t turn = 0; turn < 6; ++turn) {
        talk(chat, prompt(1 + rest % 3, 500 + turn));
        need(chat.save());
      }
      need(Session::remove(store, std::vector<std::string>{"chat"}));
      CAPTURE(kept, rest);
      CHECK(need(store.paths()).empty());
      CHECK(store.stats().blocks_kept == 0);
    }
  }
}

TEST_CASE("a file that only looks like a session takes nothing of one with it", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Session trunk = saved_session(store, "alice", prompt(3000, 22));
  need(trunk.fork("branch"));  // so that alice has a token file
  std::string alien;
  for (const auto& entry : fs::directory_iterator(dir / "store/sessions")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("alice.") && name.ends_with(".tokens")) alien = name;
  }
  REQUIRE(!alien.empty());
  alien.replace(alien.rfind(".tokens"), std::string::npos, ".session");
  write_file(dir / ("store/sessions/" + alien), std::vector<std::byte>(200));
  std::string listed;
  for (const SessionInfo& info : need(Session::list(store))) {
    if (!info.damage.empty()) listed = info.name;
  }
  need(Session::remove(store, std::vector<std::string>{listed}));
  CHECK(need(Session::resume(store, "alice")).tokens() == 3000);
}

TEST_CASE("asking what a removal would do changes nothing", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Options options;
  options.access = Access::read;
  Store reader = need(Store::open(dir / "store", options));
  CHECK(need(Session::remove(reader, std::vector<std::string>{}, true)).blocks == 0);
  CHECK_FALSE(fs::exists(dir / "store/sessions"));
  saved_session(store, "alice", prompt(40, 23));
  CHECK(need(Session::remove(reader, std::vector<std::string>{"alice"}, true)).blocks == 3);
  CHECK(need(Session::resume(store, "alice")).reusable() == 40);
}

TEST_CASE("a branch that another continues keeps its blocks when the longer one goes",
          "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Session shorter = saved_session(store, "shorter", prompt(50, 10));
  Session longer = need(shorter.fork("longer"));
  talk(longer, prompt(50, 11));
  need(longer.save());
  need(Session::remove(store, std::vector<std::string>{"longer"}));
  CHECK(need(Session::resume(store, "shorter")).reusable() >= 48);
  saved_session(store, "other", prompt(20, 12));
  const std::vector<std::string> names{"other", "nobody"};
  CHECK(Session::remove(store, names).error().code == Errc::missing);
  CHECK(need(Session::resume(store, "other")).reusable() == 20);
}
