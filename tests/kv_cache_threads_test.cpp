#include <atomic>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "support/sequence.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

using namespace esker;
using namespace esker::test;

namespace {

/// Reads all committed rows until the cache is full; "" when they were right each time.
std::string read_on(const KvCache& cache, std::uint32_t end) {
  const std::uint32_t row_bytes = cache.geometry().row_bytes(0, Plane::key);
  std::vector<std::byte> rows;
  for (std::uint32_t length = 0; length < end;) {
    length = cache.length();
    rows.resize(std::size_t{length} * row_bytes);
    if (auto read = cache.read(0, Plane::key, {0, length}, rows); !read) {
      return read.error().message;
    }
    const Shown shown = shown_by(rows, row_bytes, {0, Plane::key, 0});
    if (!shown.problem.empty()) return shown.problem;
    const auto in_place = cache.keys(0).first(rows.size());
    if (!std::equal(rows.begin(), rows.end(), in_place.begin())) return "keys and read differ";
  }
  return {};
}

}  // namespace

TEST_CASE("threads read what a writer has committed while it goes on", "[cache][threads]") {
  const TempDir dir;
  for (const bool in_file : {false, true}) {
    constexpr std::uint32_t tokens = 400;
    KvCache cache = in_file ? need(KvCache::create(dir / "cache", cache_geometry(), tokens))
                            : need(KvCache::in_memory(cache_geometry(), tokens));
    std::vector<std::string> problems(3);
    std::vector<std::thread> readers;
    for (std::string& problem : problems) {
      readers.emplace_back([&] { problem = read_on(cache, tokens); });
    }
    Sequence sequence;
    for (std::uint32_t at = 0; at < tokens; ++at) need(append(cache, sequence, 1, at + 1));
    for (std::thread& reader : readers) reader.join();
    for (const std::string& problem : problems) CHECK(problem.empty());
  }
}
