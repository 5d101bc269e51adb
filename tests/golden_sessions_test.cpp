#include <cstdlib>
#include <filesystem>

#include "catch.hpp"
#include "support/process.hpp"
#include "support/sequence.hpp"
#include "support/sessions.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

/// Sessions and a cache file written by earlier versions, kept for ever, as golden_test.cpp does
/// for stores.

namespace {

constexpr std::uint32_t long_chat_tokens = 5000;  // more than fit into a session file

std::vector<std::byte> golden_state() { return {std::byte{1}, std::byte{2}, std::byte{3}}; }

int make_golden_sessions(const Arguments& arguments) {
  const std::string& directory = arguments.at(0);
  std::filesystem::create_directories(directory);
  Options options = small_options(16 * mib);
  options.segment_bytes = 16 * kib;
  Store store = make_store(directory + "/store", tiny_geometry(64), options);
  SessionOptions about;
  about.metadata = {{"title", "Grüße"}};
  about.priority = 7;
  about.time_to_live_s = 1ULL << 40;
  Session chat = need(Session::create(store, "long chat", about));
  talk(chat, prompt(long_chat_tokens, 1));
  need(chat.save());
  need(chat.attach("sampler", golden_state()));
  need(chat.keep(4 * mib));
  Session branch = need(chat.fork("branch/1"));
  talk(branch, prompt(10, 2));
  need(branch.save());
  need(branch.truncate(4990));
  need(branch.save());
  KvCache cache = need(KvCache::create(directory + "/cache", cache_geometry(), 64));
  Sequence sequence;
  need(append(cache, sequence, 20, 3));
  need(cache.sync());
  need(append(cache, sequence, 5, 4));
  return 0;
}

const RoleName golden_role("make_golden_sessions", &make_golden_sessions);

void check_golden(const std::string& directory) {
  Store store = need(Store::open(directory + "/store"));
  Session chat = need(Session::resume(store, "long chat"));
  CHECK(chat.tokens() == long_chat_tokens);
  CHECK(chat.reusable() == long_chat_tokens);
  CHECK(wrong_session(chat).empty());
  CHECK(need(chat.attachment("sampler")) == golden_state());
  const SessionInfo info = need(chat.info());
  CHECK(info.metadata == SessionMetadata{{"title", "Grüße"}});
  CHECK(info.priority == 7);
  CHECK(info.time_to_live_s == 1ULL << 40);
  CHECK(info.kept);
  CHECK(info.kept_tokens == long_chat_tokens);
  Session branch = need(Session::resume(store, "branch/1"));
  CHECK(branch.tokens() == 4990);
  CHECK(branch.reusable() == 4990);
  CHECK(need(store.verify()).damage.empty());
  const KvCache cache = need(KvCache::open(directory + "/cache"));
  CHECK(sequence_of(cache).tokens() == 25);
}

}  // namespace

TEST_CASE("sessions and a cache file written by version 0.1 are read, and written on",
          "[session]") {
  const TempDir dir;
  const std::string archive = std::string(ESKER_TEST_DATA_DIR) + "/store/sessions-0.1.tar.xz";
  const std::string command =
      "tar --no-same-owner -xpJf '" + archive + "' -C '" + dir.path().string() + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  check_golden(dir / "sessions-0.1");
  Store store = need(Store::open(dir / "sessions-0.1/store"));
  Session chat = need(Session::resume(store, "long chat"));
  talk(chat, prompt(100, 5));
  need(chat.save());
  CHECK(need(Session::resume(store, "long chat")).reusable() == long_chat_tokens + 100);
}

TEST_CASE("the sessions that would be kept for later versions hold what they should", "[session]") {
  const TempDir dir;
  CHECK(run_child("make_golden_sessions", {dir / "g"}) == 0);
  check_golden(dir / "g");
}
