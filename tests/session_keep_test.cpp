#include <atomic>
#include <filesystem>
#include <thread>

#include "catch.hpp"
#include "support/sessions.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// Fills the store several times over.
void flood(Store& store, std::uint64_t seed) {
  const auto rounds = need(store.info()).capacity_bytes / store.geometry().block_bytes();
  for (std::uint64_t i = 0; i < rounds; ++i) {
    static_cast<void>(need(try_put(store, prompt(64, seed + i))));
  }
}

}  // namespace

TEST_CASE("blocks of a kept session are not evicted", "[session][keep]") {
  const TempDir dir;
  Store store = make_store(dir / "store", small_geometry(), small_options(2 * mib));
  const TokenList words = prompt(40, 1);
  const TokenList others = prompt(40, 2);
  {
    need(saved_session(store, "kept", words).keep());
    saved_session(store, "not kept", others);
  }
  CHECK(store.stats().blocks_kept == 3);
  flood(store, 100);
  CHECK(need(Session::resume(store, "kept")).reusable() == 40);
  CHECK(need(Session::resume(store, "not kept")).reusable() < 40);
  const Freed freed = need(store.evict(0));
  CHECK(freed.kept_blocks == 3);
  need(store.evict_older_than(UINT64_MAX));
  Session kept = need(Session::resume(store, "kept"));
  CHECK(kept.reusable() == 40);
  CHECK(wrong_session(kept).empty());
  const SessionInfo info = need(kept.info());
  CHECK(info.kept);
  CHECK(info.kept_tokens == 40);
}

TEST_CASE("a kept session stays kept when control is built anew", "[session][keep]") {
  const TempDir dir;
  {
    Store store = make_store(dir / "store", small_geometry(), small_options(2 * mib));
    need(saved_session(store, "kept", prompt(40, 3)).keep());
  }
  std::filesystem::remove(dir / "store/control");
  Store store = need(Store::open(dir / "store"));
  CHECK(store.stats().blocks_kept == 3);
  flood(store, 200);
  CHECK(need(Session::resume(store, "kept")).reusable() == 40);
}

TEST_CASE("every session that was granted to be kept is kept after a rebuild", "[session][keep]") {
  const TempDir dir;
  {
    Store store = make_store(dir / "store", small_geometry(), small_options(2 * mib));
    const std::uint64_t block_bytes = store.geometry().block_bytes();
    need(saved_session(store, "small limit", prompt(48, 60)).keep(4 * block_bytes));
    Session large = saved_session(store, "large limit", prompt(160, 61));
    large.set_priority(9);
    need(large.save());
    need(large.keep());
    CHECK(store.stats().blocks_kept == 13);
  }
  std::filesystem::remove(dir / "store/control");
  Store store = need(Store::open(dir / "store"));
  CHECK(store.stats().blocks_kept == 13);
}

TEST_CASE("what a kept session adds is kept as well", "[session][keep]") {
  const TempDir dir;
  Store store = make_store(dir / "store", small_geometry(), small_options(2 * mib));
  {
    Session kept = saved_session(store, "kept", prompt(40, 4));
    need(kept.keep());
    talk(kept, prompt(30, 5));
    need(kept.save());
    CHECK(need(kept.info()).kept_tokens == 70);
  }
  flood(store, 300);
  CHECK(need(Session::resume(store, "kept")).reusable() == 70);
}

TEST_CASE("no more is kept than the limit, and what is beyond it says full", "[session][keep]") {
  const TempDir dir;
  Store store = make_store(dir / "store", small_geometry(), small_options(2 * mib));
  const std::uint64_t block_bytes = store.geometry().block_bytes();
  Session one = saved_session(store, "one", prompt(48, 6));
  Session two = saved_session(store, "two", prompt(48, 7));
  need(one.keep(4 * block_bytes));
  auto refused = two.keep(4 * block_bytes);
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::full);
  CHECK(store.stats().blocks_kept == 3);
  CHECK_FALSE(need(two.info()).kept);
  CHECK(one.append(prompt(48, 8)).error().code == Errc::full);
  talk(one, prompt(16, 8));
  need(one.save());
  CHECK(need(one.info()).kept_tokens == 64);
  CHECK(store.stats().blocks_kept == 4);
  CHECK(one.keep(3 * block_bytes).error().code == Errc::full);
  need(two.keep(8 * block_bytes));
  CHECK(store.stats().blocks_kept == 7);
}

TEST_CASE("letting one session go keeps what another holds", "[session][keep]") {
  const TempDir dir;
  Store store = make_store(dir / "store", small_geometry(), small_options(2 * mib));
  {
    Session trunk = saved_session(store, "trunk", prompt(48, 9));
    Session branch = need(trunk.fork("branch"));
    talk(branch, prompt(32, 10));
    need(branch.save());
    need(trunk.keep());
    need(branch.keep());
    CHECK(store.stats().blocks_kept == 5);
    need(branch.unkeep());
    CHECK(store.stats().blocks_kept == 3);
    need(branch.keep());
  }
  need(Session::remove(store, std::vector<std::string>{"branch"}));
  CHECK(store.stats().blocks_kept == 3);
  flood(store, 400);
  CHECK(need(Session::resume(store, "trunk")).reusable() == 48);
}

TEST_CASE("what a kept session drops, or never saved, is evicted again", "[session][keep]") {
  const TempDir dir;
  Store store = make_store(dir / "store", small_geometry(), small_options(2 * mib));
  {
    Session kept = saved_session(store, "kept", prompt(160, 11));
    need(kept.keep());
    CHECK(store.stats().blocks_kept == 10);
    need(kept.truncate(40));
    need(kept.save());
    CHECK(store.stats().blocks_kept == 3);
    talk(kept, prompt(100, 12));
  }
  CHECK(store.stats().blocks_kept == 3);
  const std::vector<std::string> names{"kept", "kept"};
  CHECK(need(Session::remove(store, names)).paths == 1);
  CHECK(store.stats().blocks_kept == 0);
}

TEST_CASE("a kept session's turn that is not saved yet is not evicted under it",
          "[session][keep]") {
  const TempDir dir;
  Store store = make_store(dir / "store", small_geometry(), small_options(2 * mib));
  Session kept = saved_session(store, "kept", prompt(40, 13));
  need(kept.keep());
  talk(kept, prompt(60, 14));
  flood(store, 500);
  CHECK(kept.reusable() == 100);
  CHECK(wrong_session(kept).empty());
  need(kept.save());
  CHECK(need(kept.info()).kept_tokens == 100);
}

TEST_CASE("blocks that stay kept are never without their mark while another session goes",
          "[session][keep]") {
  const TempDir dir;
  Store store = make_store(dir / "store", small_geometry(), small_options(2 * mib));
  {
    Session trunk = saved_session(store, "trunk", prompt(48, 15));
    need(trunk.keep());
  }
  std::atomic<bool> done{false};
  std::thread evictor([&] {
    while (!done) static_cast<void>(store.evict(0));
  });
  for (int round = 0; round < 50; ++round) {
    {
      Session trunk = need(Session::resume(store, "trunk"));
      need(need(trunk.fork("branch")).keep());
    }
    need(Session::remove(store, std::vector<std::string>{"branch"}));
  }
  done = true;
  evictor.join();
  CHECK(need(Session::resume(store, "trunk")).reusable() == 48);
}

TEST_CASE("what a branch saves of its kept parent is kept", "[session][keep]") {
  const TempDir dir;
  Store store = make_store(dir / "store", small_geometry(), small_options(2 * mib));
  {
    Session kept = saved_session(store, "kept", prompt(40, 93));
    need(kept.keep());
    talk(kept, prompt(56, 94));
    need(kept.fork("branch"));
  }
  CHECK(store.stats().blocks_kept == 6);
  flood(store, 600);
  CHECK(need(Session::resume(store, "kept")).reusable() == 96);
}

TEST_CASE("a kept session's last block stays, whoever continues it", "[session][keep]") {
  const TempDir dir;
  Store store = make_store(dir / "store", small_geometry(), small_options(8 * mib));
  for (std::uint32_t rest = 1; rest < 16; ++rest) {
    const TokenList words = prompt(32 + rest, 70 + rest);
    const std::string name = "kept " + std::to_string(rest);
    Session kept = saved_session(store, name, words);
    need(kept.keep());
    Session branch = need(kept.fork(name + ", branch"));
    talk(branch, prompt(5, 90));
    need(branch.save());
    put(store, fork_at(words, 32 + rest, prompt(40, 91)));
    kept = need(Session::resume(store, name));
    CHECK(kept.reusable() == 32 + rest);
    CHECK(need(kept.info()).kept_tokens == 32 + rest);
    need(kept.unkeep());
  }
}

TEST_CASE("a kept chat of many turns keeps no more blocks than it has", "[session][keep]") {
  const TempDir dir;
  Store store = make_store(dir / "store", small_geometry(), small_options(2 * mib));
  Session kept = saved_session(store, "kept", prompt(20, 92));
  need(kept.keep());
  for (std::uint64_t turn = 0; turn < 20; ++turn) {
    talk(kept, prompt(5, 100 + turn));
    need(kept.save());
    REQUIRE(store.stats().blocks_kept == (kept.tokens() + 15) / 16);
    REQUIRE(need(kept.info()).kept_tokens == kept.tokens());
  }
}
