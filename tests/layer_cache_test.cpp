#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "layer_cache_support.hpp"
#include "support/stores.hpp"

using namespace esker;
using namespace esker::test;

namespace {

LayerCache make_layer(std::uint32_t open = 100, const LayerShape& shape = small_layer()) {
  LayerCache cache = need(LayerCache::make(shape));
  if (open > 0) need(cache.initialize(open));
  return cache;
}

Result<void> put(LayerCache& cache, std::uint32_t token, std::uint64_t version = 1) {
  return cache.write(token, layer_row(token, Plane::key, version, cache.row_bytes()),
                     layer_row(token, Plane::value, version, cache.row_bytes()));
}

void put_all(LayerCache& cache, std::uint32_t begin, std::uint32_t end, std::uint64_t version = 1) {
  for (std::uint32_t token = begin; token < end; ++token) need(put(cache, token, version));
}

/// "" when the range shows these tokens, all of one version.
std::string wrong_rows(const LayerRange& range, std::size_t row_bytes, std::uint64_t version = 1) {
  const std::size_t bytes = (range.end() - range.begin()) * row_bytes;
  if (range.keys().size() != bytes || range.values().size() != bytes) return "size";
  for (std::uint32_t token = range.begin(); token < range.end(); ++token) {
    const std::size_t at = (token - range.begin()) * row_bytes;
    for (const Plane plane : {Plane::key, Plane::value}) {
      const auto rows = plane == Plane::key ? range.keys() : range.values();
      if (!equal(rows.subspan(at, row_bytes), layer_row(token, plane, version, row_bytes))) {
        return "token " + std::to_string(token) + " " + std::string(name(plane));
      }
    }
  }
  return "";
}

template <class T>
std::string refusal(const Result<T>& result) {
  if (result) return "it was taken";
  return std::string(name(result.error().code)) + ": " + result.error().message;
}

std::string printed(const LayerCache& cache) {
  std::ostringstream out;
  out << cache;
  return out.str();
}

int in_child(int (*body)(LayerCache&), LayerCache& cache) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGTERM}) std::signal(signal, SIG_DFL);
    ::alarm(120);  // a hang ends as a signal
    ::_exit(body(cache));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// The number of the first call that does not answer `forked`, 0 when all do.
int calls_after_fork(LayerCache& cache) {
  const auto row = layer_row(0, Plane::key, 1, cache.row_bytes());
  const auto forked = [](const auto& result) {
    return !result && result.error().code == Errc::forked;
  };
  if (!forked(cache.initialize(200))) return 1;
  if (!forked(cache.write(0, row, row))) return 2;
  if (!forked(cache.write_batch({}))) return 3;
  if (!forked(cache.read(0))) return 4;
  if (!forked(cache.read_range(0, 0))) return 5;
  if (cache.length() != 0 || cache.capacity() != 0 || !cache.empty()) return 6;
  if (printed(cache).find("length 0") == std::string::npos) return 7;
  LayerCache mine = make_layer();
  if (!put(mine, 0) || mine.length() != 1) return 8;
  const LayerCache copy = cache;
  return forked(copy.read(0)) ? 0 : 9;
}

}  // namespace

TEST_CASE(
    "a layer cache is made for 8,192 tokens of 4 heads, 64 dims and f32 unless told otherwise",
    "[cache]") {
  LayerCache cache = need(LayerCache::make());
  CHECK(cache.shape().max_tokens == 8192);
  CHECK(cache.shape().heads == 4);
  CHECK(cache.shape().head_dim == 64);
  CHECK(cache.shape().dtype == "f32");
  CHECK(cache.row_bytes() == 4 * 64 * 4);
  CHECK(cache.capacity() == 0);
  CHECK(cache.empty());
  CHECK(need(cache.initialize(8192)) == 8192);
  CHECK(cache.length() == 0);
}

TEST_CASE("a layer cache refuses a shape without tokens, heads or dims, or of an unknown dtype",
          "[cache]") {
  LayerShape shape = small_layer(0);
  CHECK_THAT(refusal(LayerCache::make(shape)), contains("invalid: LayerCache: max_tokens is 0, "
                                                        "allowed is 1…"));
  shape = small_layer();
  shape.heads = 0;
  CHECK_THAT(refusal(LayerCache::make(shape)), contains("invalid: LayerCache: heads is 0"));
  shape = small_layer();
  shape.head_dim = 0;
  CHECK_THAT(refusal(LayerCache::make(shape)), contains("invalid: LayerCache: head_dim is 0"));
  shape = small_layer();
  shape.dtype = "f12";
  CHECK_THAT(refusal(LayerCache::make(shape)), contains("\"f12\""));
  shape.dtype = "q8_0";  // packs 32 elements, a row has 12
  CHECK_THAT(refusal(LayerCache::make(shape)), contains("multiple of the 32"));
  shape = small_layer();
  shape.heads = UINT32_MAX;
  shape.head_dim = UINT32_MAX;
  CHECK_THAT(refusal(LayerCache::make(shape)), contains("invalid"));
}

TEST_CASE("a layer cache that no address space can hold is refused, not half made", "[cache]") {
  LayerShape shape;
  shape.max_tokens = UINT32_MAX;
  shape.heads = 1U << 11U;
  shape.head_dim = 1U << 11U;
  CHECK_THAT(refusal(LayerCache::make(shape)), contains("no_memory"));
}

TEST_CASE("positions are opened up to the maximum, and only ever more of them", "[cache]") {
  LayerCache cache = need(LayerCache::make(small_layer(300)));
  CHECK_THAT(refusal(cache.initialize(0)), contains("invalid: LayerCache::initialize: tokens is 0, "
                                                    "allowed is 1…300"));
  CHECK(cache.capacity() == 0);
  CHECK(need(cache.initialize(10)) == 10);
  put_all(cache, 0, 10);
  CHECK(need(cache.initialize(200)) == 200);
  CHECK(cache.capacity() == 200);
  CHECK(cache.length() == 10);
  CHECK(wrong_rows(need(cache.read_range(0, 10)), cache.row_bytes()) == "");
  CHECK(need(cache.initialize(5)) == 200);
  CHECK(cache.length() == 10);
  CHECK(need(cache.initialize(301)) == 300);
  CHECK(need(cache.initialize(UINT32_MAX)) == 300);
  put_all(cache, 10, 300);
  CHECK(cache.length() == 300);
  CHECK(wrong_rows(need(cache.read_range(0, 300)), cache.row_bytes()) == "");
}

TEST_CASE("growing a layer cache moves no row", "[cache]") {
  LayerCache cache = make_layer(1);
  need(put(cache, 0));
  const std::byte* before = need(cache.read(0)).keys().data();
  need(cache.initialize(300));
  CHECK(need(cache.read(0)).keys().data() == before);
}

TEST_CASE("a write names the token, the width and what is allowed when it is refused", "[cache]") {
  LayerCache cache = need(LayerCache::make(small_layer()));
  const auto row = layer_row(0, Plane::key, 1, cache.row_bytes());
  const auto longer = layer_row(0, Plane::key, 1, cache.row_bytes() + 1);
  const std::span<const std::byte> shorter = std::span(row).first(row.size() - 1);
  CHECK_THAT(refusal(cache.write(0, row, row)), contains("token is 0, no position is open; call "
                                                         "initialize"));
  need(cache.initialize(50));
  CHECK_THAT(refusal(cache.write(50, row, row)), contains("token is 50, allowed is 0…49"));
  CHECK_THAT(refusal(cache.write(UINT32_MAX, row, row)), contains("token is 4294967295"));
  CHECK_THAT(refusal(cache.write(3, shorter, row)),
             contains("the keys of token 3 have 23 bytes, a row has 24"));
  CHECK_THAT(refusal(cache.write(3, row, longer)),
             contains("the values of token 3 have 25 bytes, a row has 24"));
  CHECK_THAT(refusal(cache.write(3, {}, row)), contains("have 0 bytes"));
  CHECK(cache.empty());
  CHECK_FALSE(cache.read(3));
}

TEST_CASE("the length of a layer counts the leading tokens that were written, in any order",
          "[cache]") {
  LayerCache cache = make_layer(300);
  put_all(cache, 1, 200);
  CHECK(cache.length() == 0);
  CHECK(cache.empty());
  need(put(cache, 0));
  CHECK(cache.length() == 200);
  put_all(cache, 201, 300);
  CHECK(cache.length() == 200);
  need(put(cache, 200));
  CHECK(cache.length() == 300);
  need(put(cache, 7, 2));  // again: no longer, no shorter
  CHECK(cache.length() == 300);
  CHECK(wrong_rows(need(cache.read(7)), cache.row_bytes(), 2) == "");
}

TEST_CASE("the length stops exactly at a gap, wherever it lies", "[cache]") {
  for (std::uint32_t gap = 0; gap < 130; ++gap) {
    LayerCache cache = make_layer(130);
    for (std::uint32_t token = 130; token-- > 0;) {
      if (token != gap) need(put(cache, token));
    }
    REQUIRE(cache.length() == gap);
    need(put(cache, gap));
    REQUIRE(cache.length() == 130);
  }
}

TEST_CASE("a token is read once it was written, also beyond a gap", "[cache]") {
  LayerCache cache = make_layer(100);
  need(put(cache, 64));
  const LayerRange range = need(cache.read(64));
  CHECK(range.begin() == 64);
  CHECK(range.end() == 65);
  CHECK(wrong_rows(range, cache.row_bytes()) == "");
  CHECK_THAT(refusal(cache.read(63)), contains("token 63 was never written"));
  CHECK_THAT(refusal(cache.read(0)), contains("never written"));
  CHECK_THAT(refusal(cache.read(100)), contains("token is 100, allowed is 0…99"));
  CHECK_THAT(refusal(need(LayerCache::make(small_layer())).read(0)),
             contains("no position is open"));
}

TEST_CASE("a range of rows is one span for keys and one for values", "[cache]") {
  LayerCache cache = make_layer(100);
  put_all(cache, 0, 80);
  const LayerRange all = need(cache.read_range(0, 80));
  CHECK(wrong_rows(all, cache.row_bytes()) == "");
  const LayerRange part = need(cache.read_range(17, 23));
  CHECK(part.begin() == 17);
  CHECK(part.end() == 23);
  CHECK(wrong_rows(part, cache.row_bytes()) == "");
  CHECK(part.keys().data() == all.keys().data() + 17 * cache.row_bytes());
}

TEST_CASE("a range that ends before it begins, or beyond the length, is refused", "[cache]") {
  LayerCache cache = make_layer(100);
  put_all(cache, 0, 10);
  need(put(cache, 11));
  CHECK_THAT(refusal(cache.read_range(5, 4)), contains("begin is 5, allowed is 0…4"));
  CHECK_THAT(refusal(cache.read_range(0, 11)), contains("end is 11, allowed is at most 10"));
  CHECK_THAT(refusal(cache.read_range(50, 51)), contains("end is 51"));
  CHECK_THAT(refusal(cache.read_range(UINT32_MAX, UINT32_MAX)), contains("end is 4294967295"));
  CHECK_THAT(refusal(cache.read_range(11, 11)), contains("end is 11"));
}

TEST_CASE("an empty range is fine, also of an empty layer", "[cache]") {
  const LayerCache fresh = need(LayerCache::make(small_layer()));
  CHECK(need(fresh.read_range(0, 0)).keys().empty());
  LayerCache cache = make_layer();
  put_all(cache, 0, 10);
  CHECK(need(cache.read_range(10, 10)).values().empty());
  CHECK(need(cache.read_range(3, 3)).keys().empty());
}

TEST_CASE("a batch is written whole, and the last entry of a token stays", "[cache]") {
  LayerCache cache = make_layer(100);
  LayerBatch batch(cache.row_bytes());
  for (const std::uint32_t token : {2U, 0U, 1U}) batch.add(token, 5);
  batch.add(1, 6);
  need(cache.write_batch(batch.entries()));
  CHECK(cache.length() == 3);
  CHECK(wrong_rows(need(cache.read(0)), cache.row_bytes(), 5) == "");
  CHECK(wrong_rows(need(cache.read(1)), cache.row_bytes(), 6) == "");
}

TEST_CASE("a batch with one wrong entry changes nothing, and its place is named", "[cache]") {
  LayerCache cache = make_layer(100);
  put_all(cache, 0, 4, 1);
  LayerBatch batch(cache.row_bytes());
  for (std::uint32_t token = 0; token < 6; ++token) batch.add(token, 9);
  std::vector<LayerEntry> entries = batch.entries();
  entries[5].token = 100;
  CHECK_THAT(refusal(cache.write_batch(entries)),
             contains("entry 5 of 6: token is 100, allowed is 0…99"));
  entries[5].token = 5;
  entries[5].values = entries[5].values.first(3);
  CHECK_THAT(refusal(cache.write_batch(entries)),
             contains("entry 5 of 6: the values of token 5 have 3 bytes, a row has 24"));
  CHECK(cache.length() == 4);
  CHECK(wrong_rows(need(cache.read_range(0, 4)), cache.row_bytes(), 1) == "");
}

TEST_CASE("an empty batch is fine, also before positions are open", "[cache]") {
  LayerCache cache = need(LayerCache::make(small_layer()));
  CHECK(cache.write_batch({}));
  CHECK(cache.empty());
}

TEST_CASE("copies of a handle share one cache, which lives as long as the last of them",
          "[cache]") {
  std::optional<LayerCache> first = make_layer(10);
  LayerCache second = *first;
  put_all(*first, 0, 5);
  CHECK(second.length() == 5);
  need(second.initialize(20));
  CHECK(first->capacity() == 20);
  std::optional<LayerRange> range = need(first->read_range(0, 5));
  first.reset();
  CHECK(wrong_rows(need(second.read_range(0, 5)), second.row_bytes()) == "");
  const std::size_t row_bytes = second.row_bytes();
  { const LayerCache last = std::move(second); }
  CHECK(wrong_rows(*range, row_bytes) == "");  // the range alone keeps the rows
}

TEST_CASE("a handle that was moved from answers invalid", "[cache]") {
  LayerCache from = make_layer(10);
  const auto row = layer_row(0, Plane::key, 1, from.row_bytes());
  LayerCache to = std::move(from);
  // NOLINTBEGIN(bugprone-use-after-move)
  for (const std::string& text :
       {refusal(from.initialize(1)), refusal(from.write(0, row, row)),
        refusal(from.write_batch({})), refusal(from.read(0)), refusal(from.read_range(0, 0))}) {
    CHECK_THAT(text, contains("invalid") && contains("moved from"));
  }
  CHECK(from.length() == 0);
  CHECK(from.empty());
  CHECK(from.capacity() == 0);
  CHECK(from.row_bytes() == 0);
  CHECK(from.shape().max_tokens == 0);
  CHECK(printed(from) == "LayerCache(moved from)");
  // NOLINTEND(bugprone-use-after-move)
  need(put(to, 0));
  from = to;
  CHECK(from.length() == 1);
}

TEST_CASE("a thread that holds a range cannot write to that cache, and is told so", "[cache]") {
  LayerCache cache = make_layer(100);
  LayerCache copy = cache;
  LayerCache other = make_layer(100);
  put_all(cache, 0, 10);
  const auto row = layer_row(0, Plane::key, 1, cache.row_bytes());
  std::optional<LayerRange> outer = need(cache.read_range(0, 10));
  {
    const LayerRange inner = need(cache.read(3));
    CHECK_THAT(refusal(cache.write(0, row, row)), contains("invalid") && contains("LayerRange"));
  }
  CHECK_THAT(refusal(copy.write(0, row, row)), contains("this thread holds a LayerRange"));
  CHECK_THAT(refusal(cache.write_batch({})), contains("this thread holds a LayerRange"));
  CHECK(put(other, 0));  // another cache is another lock
  CHECK(need(cache.initialize(200)) == 200);
  std::optional<LayerRange> moved = std::move(*outer);
  CHECK(outer->keys().empty());
  outer.reset();  // it holds nothing any more
  CHECK_FALSE(put(cache, 10));
  *moved = need(other.read(0));
  CHECK(put(cache, 10));
  CHECK_FALSE(put(other, 1));
  moved.reset();
  CHECK(put(other, 1));
}

TEST_CASE("a thread may hold ranges of very many caches at once", "[cache]") {
  std::vector<LayerCache> caches;
  std::vector<LayerRange> ranges;
  for (int i = 0; i < 100; ++i) {
    caches.push_back(make_layer(2));
    need(put(caches.back(), 0));
    for (int times = 0; times < 3; ++times) ranges.push_back(need(caches.back().read(0)));
  }
  for (LayerCache& cache : caches) CHECK_FALSE(put(cache, 1));
  for (std::size_t i = 0; i < 150; ++i) ranges.erase(ranges.begin());
  for (std::size_t i = 0; i < caches.size(); ++i) CHECK(put(caches[i], 1).has_value() == (i < 50));
  ranges.clear();
  for (LayerCache& cache : caches) CHECK(put(cache, 1));
}

TEST_CASE("printing a layer cache is one line that holds no row", "[cache]") {
  LayerCache cache = make_layer(100);
  put_all(cache, 0, 10);
  CHECK(printed(cache) == "LayerCache(300 tokens, 3 heads, 4 dims, f16; open 100, length 10)");
}

TEST_CASE("after a fork every call of the child is refused and none hangs", "[cache]") {
  LayerCache cache = make_layer(100);
  put_all(cache, 0, 10);
  CHECK(in_child(&calls_after_fork, cache) == 0);
  CHECK(wrong_rows(need(cache.read_range(0, 10)), cache.row_bytes()) == "");
  CHECK(put(cache, 10));
}

TEST_CASE("a fork beside a thread that writes leaves a child that does not hang", "[cache]") {
  LayerCache cache = make_layer(100);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (std::uint64_t version = 1; !stop; ++version) put_all(cache, 0, 50, version);
  });
  int worst = 0;
  for (int i = 0; i < 50; ++i) worst = std::max(worst, in_child(&calls_after_fork, cache));
  stop = true;
  writer.join();
  CHECK(worst == 0);
}

TEST_CASE("a range that the parent held is let go in the child without a lock", "[cache]") {
  LayerCache cache = make_layer(100);
  put_all(cache, 0, 10);
  std::optional<LayerRange> range = need(cache.read_range(0, 10));
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(120);
    range.reset();
    ::_exit(calls_after_fork(cache));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  CHECK(status == 0);
  CHECK_FALSE(put(cache, 0));
  range.reset();
  CHECK(put(cache, 0));
}
