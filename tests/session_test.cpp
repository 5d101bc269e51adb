#include <filesystem>

#include "catch.hpp"
#include "support/disk.hpp"
#include "support/sessions.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

constexpr std::uint32_t block_tokens = 16;

std::uint64_t ready(const Store& store) { return store.stats().blocks_ready; }
std::uint64_t reserved(const Store& store) { return store.stats().blocks_reserved; }

}  // namespace

TEST_CASE("a session that was saved is resumed with all of its tokens and rows", "[session]") {
  const TempDir dir;
  const TokenList words = prompt(53, 1);
  {
    Store store = make_store(dir / "store");
    Session chat = need(Session::create(store, "alice"));
    CHECK(chat.tokens() == 0);
    talk(chat, words);
    CHECK(chat.tokens() == 53);
    CHECK(chat.reusable() == 53);
    CHECK(wrong_session(chat).empty());
    need(chat.save());
  }
  Store store = need(Store::open(dir / "store"));
  Session chat = need(Session::resume(store, "alice"));
  CHECK(chat.name() == "alice");
  CHECK(TokenList(chat.token_ids().begin(), chat.token_ids().end()) == words);
  CHECK(chat.reusable() == 53);
  CHECK(wrong_session(chat).empty());
}

TEST_CASE("full blocks of a session are found by everyone, its tail only after save", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Store other = need(Store::open(dir / "store"));
  Session chat = need(Session::create(store, "alice"));
  const TokenList words = prompt(40, 2);
  const Prefix published = need(try_say(chat, words));
  CHECK(published.tokens() == 32);
  CHECK(get(other, words) == 32);
  CHECK(reserved(store) == 1);
  need(chat.save());
  CHECK(get(other, words) == 40);
  CHECK(reserved(store) == 0);
  CHECK(chat.reusable() == 40);
}

TEST_CASE("an append asks only for the rows of its own tokens, wherever the last one ended",
          "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  for (const bool saving : {false, true}) {
    Session chat = need(Session::create(store, saving ? "saving" : "not saving"));
    const TokenList words = prompt(100, saving ? 3 : 4);
    for (std::uint32_t at = 0; at < 100;) {
      const std::uint32_t now = std::min(100 - at, 1 + at % 7);
      const auto part = Tokens(words).subspan(at, now);
      {
        const Reservation room = need(chat.append(part));
        CHECK(room.missing() == TokenRange{at, at + now});
        CHECK(room.tokens() == at + now);
      }
      talk(chat, part);
      at += now;
      REQUIRE(chat.tokens() == at);
      REQUIRE(chat.reusable() == at);
      REQUIRE(wrong_session(chat).empty());
      if (saving) need(chat.save());
    }
    need(chat.save());
    CHECK(get(store, words) == 100);
  }
}

TEST_CASE("a session of any number of appends takes no more blocks than its tokens need",
          "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Session chat = need(Session::create(store, "alice"));
  const TokenList words = prompt(100, 5);
  for (const std::int32_t& word : words) talk(chat, Tokens(&word, 1));
  need(chat.save());
  CHECK(ready(store) == 7);
  CHECK(reserved(store) == 0);
  CHECK(wrong_session(chat).empty());
}

TEST_CASE("a reservation that is dropped leaves the session as it was", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Session chat = need(Session::create(store, "alice"));
  talk(chat, prompt(20, 6));
  {
    Reservation room = need(chat.append(prompt(30, 7)));
    const std::vector<std::byte> junk(std::size_t{30} * store.geometry().row_bytes(0, Plane::key));
    need(room.write(0, Plane::key, 20, junk));
    CHECK(chat.append(prompt(1, 8)).error().code == Errc::invalid);
    CHECK(chat.truncate(3).error().code == Errc::invalid);
    CHECK(chat.save().error().code == Errc::invalid);
    CHECK(wrong_session(chat).empty());
  }
  CHECK(chat.tokens() == 20);
  CHECK(chat.reusable() == 20);
  CHECK(wrong_session(chat).empty());
  talk(chat, prompt(30, 9));
  CHECK(chat.reusable() == 50);
  CHECK(wrong_session(chat).empty());
}

TEST_CASE("an append with a row that was not written publishes nothing and can be mended",
          "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Session chat = need(Session::create(store, "alice"));
  const TokenList words = prompt(20, 10);
  Reservation room = need(chat.append(words));
  const Content content(words);
  need(write_rows(room, store.geometry(), content, {0, 19}));
  auto published = std::move(room).publish();
  REQUIRE(!published);
  CHECK(published.error().code == Errc::invalid);
  CHECK(published.error().message.find("token 19") != std::string::npos);
  CHECK(chat.tokens() == 0);
  need(write_rows(room, store.geometry(), content, {19, 20}));
  need(std::move(room).publish());
  CHECK(chat.reusable() == 20);
  CHECK(wrong_session(chat).empty());
}

TEST_CASE("a reservation may outlive its session", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  const TokenList words = prompt(40, 11);
  Reservation room;
  {
    Session chat = need(Session::create(store, "alice"));
    room = need(chat.append(words));
  }
  need(write_rows(room, store.geometry(), Content(words), {0, 40}));
  CHECK(need(std::move(room).publish()).tokens() == 32);
  CHECK(get(store, words) == 32);
  CHECK(reserved(store) == 0);
}

TEST_CASE("a truncated session goes on with other tokens and right rows", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  const TokenList words = prompt(60, 12);
  for (const std::uint32_t cut : {0U, 1U, 3U, 15U, 16U, 17U, 31U, 47U, 48U, 49U, 59U, 60U, 99U}) {
    for (const bool saved : {false, true}) {
      const std::string name = "cut " + std::to_string(cut) + (saved ? " saved" : "");
      Session chat = need(Session::create(store, name));
      talk(chat, words);
      if (saved) need(chat.save());
      need(chat.truncate(cut));
      CAPTURE(name);
      CHECK(chat.tokens() == std::min(cut, 60U));
      CHECK(chat.reusable() == chat.tokens());
      CHECK(wrong_session(chat).empty());
      const std::uint32_t kept = chat.tokens();
      const TokenList more = prompt(37, 1000 + cut);
      CHECK(need(chat.append(more)).missing().begin >= kept);
      talk(chat, more);
      CHECK(chat.reusable() == kept + 37);
      CHECK(wrong_session(chat).empty());
      need(chat.save());
      CHECK(need(Session::resume(store, name)).reusable() == kept + 37);
    }
  }
  CHECK(need(store.verify()).damage.empty());
}

TEST_CASE("branches of a session share its blocks and go on by themselves", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Session chat = need(Session::create(store, "trunk"));
  talk(chat, prompt(40, 13));
  const std::uint64_t before = ready(store) + reserved(store);
  Session left = need(chat.fork("left"));
  Session right = need(chat.fork("right"));
  CHECK(ready(store) + reserved(store) == before + 2);
  CHECK(left.reusable() == 40);
  talk(left, prompt(30, 14));
  talk(right, prompt(30, 15));
  talk(chat, prompt(5, 16));
  for (const Session* session : {&chat, &left, &right}) CHECK(wrong_session(*session).empty());
  Session leaf = need(left.fork("leaf"));
  CHECK(leaf.reusable() == 70);
  CHECK(wrong_session(leaf).empty());
  CHECK(chat.fork("left").error().code == Errc::invalid);
  need(leaf.save());
  need(right.save());
  CHECK(need(Session::resume(store, "leaf")).reusable() == 70);
  CHECK(need(Session::resume(store, "right")).reusable() == 70);
}

TEST_CASE("what others have stored meanwhile is adopted by an append", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  const TokenList words = prompt(100, 17);
  Session chat = need(Session::create(store, "alice"));
  talk(chat, Tokens(words).first(20));
  put(store, words);
  Reservation room = need(chat.append(Tokens(words).subspan(20)));
  CHECK(room.missing().empty());
  need(std::move(room).publish());
  CHECK(chat.reusable() == 100);
  CHECK(reserved(store) == 0);
  CHECK(wrong_session(chat).empty());
}

TEST_CASE("an append after eviction asks for what is gone", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  const TokenList words = prompt(64, 18);
  {
    Session chat = need(Session::create(store, "alice"));
    talk(chat, words);
    need(chat.save());
  }
  need(store.evict(2 * store.geometry().block_bytes()));
  Session chat = need(Session::resume(store, "alice"));
  CHECK(chat.tokens() == 64);
  CHECK(chat.reusable() == 32);
  CHECK(need(chat.append({})).missing() == TokenRange{32, 64});
  talk(chat, prompt(3, 19));
  CHECK(chat.reusable() == 67);
  CHECK(wrong_session(chat).empty());
}

TEST_CASE("in a full store a session still knows its tokens, and says what is reusable",
          "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store", small_geometry(), small_options(2 * mib));
  Session chat = need(Session::create(store, "alice"));
  const auto blocks = static_cast<std::uint32_t>(4 * mib / store.geometry().block_bytes());
  const TokenList words = prompt(blocks * block_tokens + 3, 20);
  talk(chat, words);
  CHECK(chat.tokens() == words.size());
  CHECK(chat.reusable() < chat.tokens());
  CHECK(chat.reusable() > 0);
  CHECK(wrong_session(chat).empty());
  // So many ids are more than a store this small sets aside for sessions; nothing is lost by that.
  CHECK(chat.save().error().code == Errc::full);
  CHECK(chat.tokens() == words.size());
  CHECK(need(Session::resume(store, "alice")).tokens() == 0);
  need(chat.truncate(3000));
  need(chat.save());
  CHECK(need(Session::resume(store, "alice")).tokens() == 3000);
}

TEST_CASE("a session stays in its namespace", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  SessionOptions options;
  options.name_space = "tenant";
  Session chat = need(Session::create(store, "alice", options));
  const TokenList words = prompt(40, 21);
  talk(chat, words, "tenant");
  need(chat.save());
  CHECK(get(store, words) == 0);
  CHECK(get(store, words, "tenant") == 40);
  Session again = need(Session::resume(store, "alice"));
  CHECK(again.reusable() == 40);
  CHECK(wrong_session(again, "tenant").empty());
}

TEST_CASE("a handle that may only read resumes a session and changes nothing", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Session chat = need(Session::create(store, "alice"));
  talk(chat, prompt(40, 22));
  need(chat.save());
  for (const Access access : {Access::read, Access::inspect}) {
    Options options;
    options.access = access;
    Store reader = need(Store::open(dir / "store", options));
    Session seen = need(Session::resume(reader, "alice"));
    CHECK(seen.reusable() == 40);
    CHECK(seen.append(prompt(1, 1)).error().code == Errc::invalid);
    CHECK(seen.save().error().code == Errc::invalid);
    CHECK(Session::create(reader, "bob").error().code == Errc::invalid);
    CHECK(need(Session::list(reader)).size() == 1);
  }
}

TEST_CASE("a session that was moved from answers and does nothing", "[session]") {
  const TempDir dir;
  Store store = make_store(dir / "store");
  Session chat = need(Session::create(store, "alice"));
  const Session taken = std::move(chat);
  CHECK(chat.tokens() == 0);  // NOLINT(bugprone-use-after-move)
  CHECK(chat.name().empty());
  CHECK(chat.append(prompt(1, 1)).error().code == Errc::invalid);
  CHECK(chat.save().error().code == Errc::invalid);
  CHECK(chat.view(0, Plane::key).error().code == Errc::invalid);
  CHECK(chat.info().error().code == Errc::invalid);
}
