#include <esker/batch_view.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/disk.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// "" when the slot shows exactly the rows of these tokens, in order and without a gap.
std::string wrong_slot(const BatchView& view, std::size_t slot, const TokenList& tokens) {
  const Geometry& geometry = view.geometry();
  const Content content{Tokens(tokens)};
  if (view.position(slot) != tokens.size()) return "position";
  std::string problem;
  each_plane(geometry, [&](std::uint32_t layer, Plane plane) {
    const Result<Runs> runs =
        plane == Plane::key ? view.keys(slot, layer) : view.values(slot, layer);
    if (!runs) {
      problem = runs.error().message;
      return;
    }
    std::vector<std::byte> rows;
    std::uint32_t next = 0;
    for (const Run& run : *runs) {
      if (run.tokens.begin != next) problem = "a gap";
      next = run.tokens.end;
      rows.insert(rows.end(), run.bytes.begin(), run.bytes.end());
    }
    if (next != tokens.size()) problem = "rows";
    if (rows != content.rows(geometry, layer, plane, {0, next})) problem = "bytes";
  });
  return problem;
}

/// Writes the rows of tokens[begin, …) into a cache that has the ones before.
void feed(KvCache& cache, const TokenList& tokens) {
  const Content content{Tokens(tokens)};
  const Geometry geometry = cache.geometry();
  for (std::uint32_t at = cache.length(); at < tokens.size(); ++at) {
    for (std::uint32_t layer = 0; layer < geometry.layers.size(); ++layer) {
      need(cache.store(layer, content.rows(geometry, layer, Plane::key, {at, at + 1}),
                       content.rows(geometry, layer, Plane::value, {at, at + 1})));
    }
    need(cache.advance());
  }
}

/// Appends to a session what `tokens` has beyond it.
void feed(Session& session, const TokenList& tokens) {
  const Content content{Tokens(tokens)};
  Reservation reservation = need(session.append(Tokens(tokens).subspan(session.tokens())));
  need(write_rows(reservation, session.geometry(), content, reservation.missing()));
  need(std::move(reservation).publish());
}

template <class T>
std::string refusal(const Result<T>& result) {
  if (result) return "it was taken";
  return std::string(name(result.error().code)) + ": " + result.error().message;
}

Result<BatchView> view_of(const std::vector<BatchSlot>& slots) { return BatchView::make(slots); }

std::uint32_t run_count(const Result<Runs>& runs) {
  std::uint32_t count = 0;
  for ([[maybe_unused]] const Run& run : runs.value()) ++count;
  return count;
}

}  // namespace

TEST_CASE("a batch of prefixes shows the rows of each slot", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList long_prompt = prompt(100, 1);
  const TokenList short_prompt = fork_at(long_prompt, 40, prompt(7, 2));
  put(store, long_prompt);
  put(store, short_prompt);
  const Prefix a = store.lookup(long_prompt);
  const Prefix b = store.lookup(short_prompt);
  const Prefix miss = store.lookup(prompt(10, 3));
  const BatchView view = need(view_of({&miss, &a, &b, &a}));
  CHECK(view.slot_count() == 4);
  CHECK(view.geometry() == store.geometry());
  CHECK(view.position(0) == 0);
  CHECK(wrong_slot(view, 1, long_prompt) == "");
  CHECK(wrong_slot(view, 2, short_prompt) == "");
  CHECK(wrong_slot(view, 3, long_prompt) == "");
}

TEST_CASE("a miss has no rows in a batch, in each layer that the others have", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(20, 1));
  const Prefix hit = store.lookup(prompt(20, 1));
  const Prefix miss;
  const BatchView view = need(view_of({&hit, &miss}));
  CHECK(view.position(1) == 0);
  CHECK(run_count(view.keys(1, 2)) == 0);
  CHECK(run_count(view.values(1, 0)) == 0);
  CHECK_THAT(refusal(view.keys(1, 3)), contains("invalid: BatchView: slot 1, layer 3"));
}

TEST_CASE("a batch of misses, or of nothing, has no rows and no geometry", "[cache]") {
  const BatchView nothing = need(view_of({}));
  CHECK(nothing.slot_count() == 0);
  CHECK(nothing.geometry().layers.empty());
  const Prefix miss;
  const BatchView view = need(view_of({&miss, &miss}));
  CHECK(view.slot_count() == 2);
  CHECK(view.geometry().layers.empty());
  CHECK(run_count(view.keys(0, 0)) == 0);
  CHECK(run_count(view.values(1, 5)) == 0);
}

TEST_CASE("a slot, layer or plane that does not exist is named", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(20, 1));
  const Prefix hit = store.lookup(prompt(20, 1));
  const BatchView view = need(view_of({&hit}));
  CHECK(view.position(1) == 0);
  CHECK(view.position(SIZE_MAX) == 0);
  CHECK_THAT(refusal(view.keys(1, 0)),
             contains("invalid: BatchView: slot 1 does not exist; the batch has 1 slots"));
  CHECK_THAT(refusal(view.keys(0, 3)), contains("layer 3 key: no such rows; the geometry has 3"));
  CHECK_THAT(refusal(view.values(0, UINT32_MAX)), contains("layer 4294967295 value"));
  CHECK_THAT(refusal(view.values(0, 1)), contains("layer 1 value"));  // it has keys only
  CHECK(view.keys(0, 1));
}

TEST_CASE("null pointers are refused, each kind by the number of its slot", "[cache]") {
  const Prefix miss;
  const auto* no_cache = static_cast<const KvCache*>(nullptr);
  const auto* no_session = static_cast<const Session*>(nullptr);
  const auto* no_prefix = static_cast<const Prefix*>(nullptr);
  CHECK_THAT(refusal(view_of({&miss, no_prefix})),
             contains("invalid: BatchView: slot 1 of 2 is null"));
  CHECK_THAT(refusal(view_of({no_cache})), contains("slot 0 of 1 is null"));
  CHECK_THAT(refusal(view_of({&miss, &miss, no_session})), contains("slot 2 of 3 is null"));
  CHECK_THAT(refusal(view_of({BatchSlot{}})), contains("slot 0 of 1 is null"));
}

TEST_CASE("sequences of other layers, rows or dtype are refused and the difference is named",
          "[cache]") {
  const TempDir dir;
  const auto stored = [&](const std::string& name, const Geometry& geometry) {
    Store store = make_store(dir / name, geometry);
    put(store, prompt(20, 1));
    return store.lookup(prompt(20, 1));
  };
  const Prefix model = stored("model", small_geometry());
  const Prefix miss;
  Geometry other = small_geometry();
  other.layers.pop_back();
  const Prefix fewer = stored("fewer", other);
  CHECK_THAT(refusal(view_of({&model, &miss, &fewer})),
             contains("incompatible: BatchView: slot 0 and slot 2 differ in layers: 3 and 2"));
  other = small_geometry();
  other.layers[2].value_row_bytes = 58;
  const Prefix wider = stored("wider", other);
  CHECK_THAT(refusal(view_of({&miss, &model, &wider})),
             contains("slot 1 and slot 2 differ in row bytes of layer 2: K 18 V 57 and K 18 V 58"));
  other = small_geometry();
  other.dtype = "bf16";
  const Prefix typed = stored("typed", other);
  CHECK_THAT(refusal(view_of({&typed, &model})), contains("differ in dtype: bf16 and f16"));
  const Prefix blocks = stored("blocks", small_geometry(4));
  const BatchView view = need(view_of({&blocks, &model}));
  CHECK(view.geometry().block_tokens == 4);
  CHECK(wrong_slot(view, 0, prompt(20, 1)) == "");
  CHECK(wrong_slot(view, 1, prompt(20, 1)) == "");
}

TEST_CASE("a view serves many steps: what a slot holds is looked up at each call", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList tokens = prompt(60, 1);
  Prefix slot;
  const Prefix other = need(try_put_pinned(store, prompt(5, 9)));
  const BatchView view = need(view_of({&slot, &other}));
  CHECK(view.position(0) == 0);
  slot = need(try_put_pinned(store, first(tokens, 30)));
  CHECK(wrong_slot(view, 0, first(tokens, 30)) == "");
  slot = need(try_put_pinned(store, tokens));
  CHECK(wrong_slot(view, 0, tokens) == "");
  slot.shorten(17);
  CHECK(wrong_slot(view, 0, first(tokens, 17)) == "");
}

TEST_CASE("rows that changed their size since the view was made are refused", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  Geometry geometry = small_geometry();
  geometry.layers[0].key_row_bytes = 35;
  Store strange = make_store(dir / "strange", geometry);
  Prefix slot;
  const Prefix other = need(try_put_pinned(store, prompt(5, 9)));
  const BatchView view = need(view_of({&slot, &other}));
  slot = need(try_put_pinned(strange, prompt(5, 9)));
  CHECK_THAT(refusal(view.keys(0, 0)),
             contains("incompatible: BatchView: slot 0: a row of layer 0 key has 35 bytes, 34"));
}

TEST_CASE("caches, sessions and prefixes share one batch", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const TokenList stored = prompt(70, 1);
  const TokenList chat = prompt(45, 2);
  const TokenList live = prompt(33, 3);
  put(store, stored);
  const Prefix prefix = store.lookup(stored);
  Session session = need(Session::create(store, "chat"));
  KvCache cache = need(KvCache::in_memory(small_geometry(), 100));
  KvCache file = need(KvCache::create(dir / "cache", small_geometry(8), 100));
  const BatchView view = need(view_of({&prefix, &session, &cache, &file}));
  for (std::size_t slot = 1; slot < 4; ++slot) {
    CHECK(view.position(slot) == 0);
    CHECK(run_count(view.keys(slot, 0)) == 0);
  }
  feed(session, chat);
  feed(cache, live);
  feed(file, first(live, 20));
  CHECK(wrong_slot(view, 0, stored) == "");
  CHECK(wrong_slot(view, 1, chat) == "");
  CHECK(wrong_slot(view, 2, live) == "");
  CHECK(wrong_slot(view, 3, first(live, 20)) == "");
  CHECK(run_count(view.keys(2, 0)) == 1);
  CHECK(run_count(view.values(3, 2)) == 1);
}

TEST_CASE("a cache in a batch grows and shrinks from step to step", "[cache]") {
  KvCache cache = need(KvCache::in_memory(small_geometry(), 100));
  const BatchView view = need(view_of({&cache}));
  const TokenList tokens = prompt(50, 1);
  for (std::uint32_t length = 1; length <= 50; ++length) {
    feed(cache, first(tokens, length));
    REQUIRE(wrong_slot(view, 0, first(tokens, length)) == "");
  }
  need(cache.truncate(12));
  CHECK(wrong_slot(view, 0, first(tokens, 12)) == "");
  const Content content{Tokens(tokens)};
  need(cache.store(0, content.rows(small_geometry(), 0, Plane::key, {12, 13}),
                   content.rows(small_geometry(), 0, Plane::value, {12, 13})));
  // Attention in layer 0 sees the token in hand; layer 1 has not got to it yet.
  CHECK(view.position(0) == 12);
  const Runs seen = need(view.keys(0, 0));
  CHECK(seen.begin()->tokens == TokenRange{0, 13});
  const Runs not_yet = need(view.keys(0, 1));
  CHECK(not_yet.begin()->tokens == TokenRange{0, 12});
}

TEST_CASE("caches and sessions of another shape are refused like prefixes", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  const Session session = need(Session::create(store, "chat"));
  Geometry other = small_geometry();
  other.layers[0].value_row_bytes = 41;
  const KvCache cache = need(KvCache::in_memory(other, 10));
  CHECK_THAT(refusal(view_of({&cache, &session})),
             contains("slot 0 and slot 1 differ in row bytes of layer 0: K 34 V 41 and K 34 V 40"));
  CHECK_THAT(refusal(view_of({&session, &cache})),
             contains("row bytes of layer 0: K 34 V 40 and K 34 V 41"));
}

TEST_CASE("sequences of different models do not share a batch", "[cache]") {
  const KvCache one = need(KvCache::in_memory(small_geometry(), 10, small_model()));
  const KvCache other =
      need(KvCache::in_memory(small_geometry(), 10, need(ModelId::parse("weights=other\n"))));
  const KvCache unnamed = need(KvCache::in_memory(small_geometry(), 10));
  CHECK(view_of({&one, &unnamed}));
  auto mixed = view_of({&unnamed, &one, &other});
  REQUIRE(!mixed);
  CHECK(mixed.error().code == Errc::incompatible);
  CHECK(mixed.error().message.find("weights") != std::string::npos);
}

TEST_CASE("a damaged block of one slot is an error of that slot alone", "[cache]") {
  const TempDir dir;
  Store store = make_store(dir / "s");
  put(store, prompt(20, 1));
  put(store, prompt(20, 2));
  const DiskBlock block = find_block(dir / "s", prompt(20, 2), 0);
  flip_byte(block.file, row_offset(block, 16, 0, Plane::key, 3));
  const Store reader = need(Store::open(dir / "s"));
  const Prefix good = reader.lookup(prompt(20, 1));
  const Prefix bad = reader.lookup(prompt(20, 2));
  const BatchView view = need(view_of({&good, &bad}));
  CHECK_THAT(refusal(view.keys(1, 0)), contains("corrupt"));
  CHECK(wrong_slot(view, 0, prompt(20, 1)) == "");
}
