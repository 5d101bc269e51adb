#include "catch.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <random>

#include "support/model.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

#ifdef ESKER_NARROW_HASH
constexpr bool promises_hold = false;  // every bucket overflows: only "never wrong" is left
#else
constexpr bool promises_hold = true;
#endif

struct Plan {
  std::uint32_t block_tokens = 16;
  std::uint64_t seed = 0;
  std::uint64_t capacity_bytes = 8 * mib;
  bool forgetting = false;  ///< evict, remove and trim now and then
  bool freezing = false;    ///< freeze and thaw, now and then
};

/// One random history of one store, checked against the model at every step.
class History {
 public:
  explicit History(const Plan& plan) : plan_(plan), random_(plan.seed), model_(plan.block_tokens) {
    Options options = small_options(plan.capacity_bytes);
    if (plan.freezing) options.cold_bytes = plan.capacity_bytes / 4;
    Store store = make_store(path_, small_geometry(plan.block_tokens), options);
    handles_[0] = std::move(store);
    handles_[1] = need(Store::open(path_));
  }

  void step() {
    const std::uint64_t dice = random_() % 1000;
    if (dice < 400) {
      read();
    } else if (dice < 480) {
      match();
    } else if (dice < 980) {
      write();
    } else if (dice < 990) {
      reopen(dice < 984);
    } else if (plan_.forgetting) {
      forget(dice);
    }
  }

  void check_end() {
    const Stats stats = handle().stats();
    CHECK(adds_up(stats));
    CHECK(stats.blocks_reserved == 0);
    CHECK(stats.blocks_pinned == 0);
    CHECK(need(handle().verify()).damage.empty());
    CHECK(hits_ > 50);
  }

 private:
  Store& handle() { return *handles_[random_() % 2]; }

  std::string some_namespace() { return random_() % 4 == 0 ? "tenant" : ""; }

  /// Two or three different tokens and short lengths: prompts share beginnings all the time.
  TokenList some_prompt() {
    TokenList tokens(1 + random_() % (4 * plan_.block_tokens + 5));
    const std::uint64_t letters = 2 + random_() % 2;
    const std::uint64_t change = random_() % 6 == 0 ? 1 : 8;
    for (std::int32_t& token : tokens) {
      token = random_() % (change + 1) == 0 ? static_cast<std::int32_t>(random_() % letters) : 0;
    }
    return tokens;
  }

  /// A load that reports damage is void and is tried again; only a rebuild may bring that about, by
  /// finding blocks again whose rows were half written when they died.
  std::uint32_t checked_lookup(const Store& store, const TokenList& tokens,
                               const std::string& name) {
    for (;;) {
      const Prefix prefix = store.lookup(tokens, name);
      const Result<void> verified = prefix.verify();
      if (!verified && verified.error().code == Errc::corrupt && rebuilt_) continue;
      need(verified);
      REQUIRE(wrong(prefix, store.geometry(), tokens, name) == "");
      return prefix.tokens();
    }
  }

  void read() {
    const TokenList tokens = some_prompt();
    const std::string name = some_namespace();
    if (plan_.freezing && random_() % 3 == 0) {
      const std::uint64_t gone_before = gone();
      REQUIRE(need(handle().thaw(tokens, name)) <= tokens.size());
      // What was thawed may have taken the place of something, or superseded it.
      if (gone() != gone_before) model_.forget();
    }
    const std::uint32_t found = checked_lookup(handle(), tokens, name);
    if (found > 0) ++hits_;
    expect(found, tokens, name);
  }

  void match() {
    const TokenList tokens = some_prompt();
    const std::string name = some_namespace();
    expect(handle().match(tokens, name), tokens, name);
  }

  void expect(std::uint32_t found, const TokenList& tokens, const std::string& name) {
    REQUIRE(found <= tokens.size());
    const Counters counters = handle().stats().counters;
    if (!promises_hold || counters.displaced_hints > 0) return;
    CAPTURE(tokens, name);
    REQUIRE(found >= model_.promised(tokens, name));
  }

  std::uint64_t gone() {
    const Counters counters = handle().stats().counters;
    return counters.evicted_blocks + counters.removed_blocks + counters.bad_blocks;
  }

  void write() {
    const TokenList tokens = some_prompt();
    const std::string name = some_namespace();
    Store& store = handle();
    const std::uint64_t gone_before = gone();
    Reservation reservation = need(store.reserve(tokens, name));
    const TokenRange missing = reservation.missing();
    const std::uint32_t found_before = missing.empty() ? reservation.tokens() : missing.begin;
    if (gone() != gone_before) model_.forget();
    REQUIRE(found_before <= tokens.size());
    if (random_() % 10 == 0) return;
    need(write_rows(reservation, store.geometry(), Content(tokens, name), missing));
    const Result<Prefix> prefix = std::move(reservation).publish();
    if (!prefix && prefix.error().code == Errc::corrupt && rebuilt_) return;
    need(prefix.map([](const Prefix&) {}));
    REQUIRE(wrong(*prefix, store.geometry(), tokens, name) == "");
    if (prefix->tokens() == tokens.size()) model_.published(tokens, name, found_before);
  }

  void reopen(bool rebuild) {
    for (auto& handle : handles_) handle.reset();
    if (rebuild) std::filesystem::remove(path_ + "/control");
    rebuilt_ = rebuilt_ || rebuild;
    for (auto& handle : handles_) handle = need(Store::open(path_));
  }

  void forget(std::uint64_t dice) {
    Store& store = handle();
    if (plan_.freezing && random_() % 2 == 0) {
      FreezeOptions options;
      options.most_bytes = store.stats().store_bytes * (1 + random_() % 100) / 100;
      need(store.freeze(UINT64_MAX, options));
    }
    if (dice < 993) need(store.evict(store.stats().store_bytes * (random_() % 100) / 100));
    if (dice >= 993 && dice < 997) {
      const std::uint64_t path = path_of(store, some_prompt());
      if (path != 0) need(store.remove(std::array{path}));
    }
    if (dice >= 997) need(store.trim(UINT64_MAX));
    model_.forget();
  }

  Plan plan_;
  TempDir dir_;
  std::string path_ = dir_ / "s";
  std::mt19937_64 random_;
  Model model_;
  std::array<std::optional<Store>, 2> handles_;
  bool rebuilt_ = false;
  std::uint64_t hits_ = 0;
};

}  // namespace

TEST_CASE("a quiet store finds what it promised and never a wrong byte, whatever happens to it") {
  const std::uint32_t block_tokens = GENERATE(1u, 3u, 4u, 8u, 16u, 32u);
  const std::uint64_t seed = GENERATE(1u, 2u, 3u);
  CAPTURE(block_tokens, seed);
  History history({block_tokens, seed, 24 * mib, false});
  for (int i = 0; i < 1'500; ++i) history.step();
  history.check_end();
}

TEST_CASE("a store that evicts, forgets and trims never has a wrong byte") {
  const std::uint32_t block_tokens = GENERATE(1u, 4u, 16u);
  const std::uint64_t seed = GENERATE(11u, 12u, 13u);
  CAPTURE(block_tokens, seed);
  History history({block_tokens, seed, 1 * mib, true});
  for (int i = 0; i < 1'500; ++i) history.step();
  history.check_end();
}

TEST_CASE("a store that freezes and thaws never has a wrong byte, whatever else it forgets") {
  const std::uint32_t block_tokens = GENERATE(1u, 4u, 16u);
  const std::uint64_t seed = GENERATE(21u, 22u, 23u);
  CAPTURE(block_tokens, seed);
  History history({block_tokens, seed, 2 * mib, true, true});
  for (int i = 0; i < 1'500; ++i) history.step();
  history.check_end();
}

TEST_CASE("blocks without parts are all found, whichever of them share a bucket") {
  const TempDir dir;
  Store store = make_store(dir / "s", small_geometry(1), small_options());
  const TokenList tokens = prompt(900, 1);
  put(store, tokens);
  REQUIRE(store.stats().counters.displaced_hints == 0);
  CHECK(get(store, tokens) == 900);
  CHECK(store.match(tokens) == 900);
}

#ifdef ESKER_NARROW_HASH
TEST_CASE("the chain hashes of this build have 8 bits") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(40, 1));
  const std::uint64_t path = path_of(store, prompt(40, 1));
  CHECK(path == (path & 0xFF) * 0x0101010101010101U);
}
#endif
