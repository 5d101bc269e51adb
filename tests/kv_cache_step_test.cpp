#include "catch.hpp"

#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <esker/kv_cache.hpp>
#include <filesystem>
#include <random>

#include "support/process.hpp"
#include "support/sequence.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"
#include "support/tracer.hpp"

using namespace esker;
using namespace esker::test;
namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t room = 100;
constexpr std::uint32_t before = 40;
constexpr std::uint32_t kept = 20;

Sequence sequence_before() {
  Sequence sequence;
  for (std::uint64_t i = 0; i < before; ++i) sequence.add(i);
  return sequence;
}

/// Arguments: operation, path. From the mark on nothing happens but the operation.
int step_cache(const Arguments& arguments) {
  const bool adds = arguments[0] == "add";
  const bool drops = !adds;
  KvCache cache = need(KvCache::open(arguments[1]));
  // A token that no record of a sync or of a closed handle knows: only the live page can tell.
  Sequence now = sequence_of(cache);
  need(append(cache, now, 1, before - 1));
  Sequence longer = sequence_before();
  if (drops) longer.truncate(kept);
  const std::uint32_t at = longer.tokens();
  longer.add(777);
  std::vector<std::vector<std::byte>> keys;
  std::vector<std::vector<std::byte>> values;
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    keys.push_back(longer.rows(cache.geometry(), layer, Plane::key, {at, at + 1}));
    values.push_back(longer.rows(cache.geometry(), layer, Plane::value, {at, at + 1}));
  }
  // Once in vain, so that pages and symbols are there and the steps are those of the operation.
  bool good = cache.truncate(before).has_value();
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    good = cache.store(layer, keys[layer], values[layer]).has_value() && good;
  }
  good = cache.advance(0).has_value() && good;
  mark_begin();
  if (drops) good = cache.truncate(kept).has_value();
  if (arguments[0] == "rewrite") {
    for (std::uint32_t layer = 0; layer < 3; ++layer) {
      good = cache.store(layer, keys[layer], values[layer]).has_value() && good;
    }
  }
  if (arguments[0] != "drop") good = cache.advance().has_value() && good;
  // Not by `return`, whose many steps are not those of the operation.
  ::syscall(SYS_exit_group, good ? 0 : 1);
  return 1;
}
const RoleName step_cache_role("step_cache", &step_cache);

}  // namespace

// Not under AddressSanitizer: ten times as many instructions, of which most are not Esker's.
#ifndef __SANITIZE_ADDRESS__
namespace {

std::uint64_t deaths_wanted() {
  const char* wanted = std::getenv("ESKER_TEST_KILLS");
  return wanted != nullptr ? std::stoul(wanted) : 100;
}

void renew(const std::string& path) {
  fs::remove(path);
  KvCache cache = need(KvCache::create(path, cache_geometry(), room));
  Sequence sequence;
  for (std::uint32_t i = 0; i + 1 < before; ++i) need(append(cache, sequence, 1, i));
}

}  // namespace

TEST_CASE("a writer killed between any two instructions leaves the tokens before or after them",
          "[cache]") {
  const std::string operation = GENERATE("add", "drop", "rewrite");
  const TempDir dir;
  const std::string path = dir / "c";
  renew(path);
  const std::uint64_t all = Tracee("step_cache", {operation, path}).run_instructions(UINT64_MAX);
  REQUIRE(all > 100);
  Sequence dropped = sequence_before();
  dropped.truncate(operation == "add" ? before : kept);
  Sequence added = dropped;
  if (operation != "drop") added.add(777);
  bool seen_before = false;
  bool seen_after = false;
  // Each of them where they are few; else the last ones, behind the commit, and others at random.
  const bool every = operation != "rewrite";
  const std::uint64_t last = std::min<std::uint64_t>(32, all - 1);
  std::mt19937_64 random(std::random_device{}());
  for (std::uint64_t round = 1; round < (every ? all : deaths_wanted()); ++round) {
    const std::uint64_t chosen = round <= last ? all - round : 1 + random() % (all - 1);
    const std::uint64_t instruction = every ? round : chosen;
    CAPTURE(operation, instruction, all);
    renew(path);
    {
      Tracee tracee("step_cache", {operation, path});
      if (tracee.run_instructions(instruction) < instruction) continue;
      tracee.kill();
    }
    const KvCache cache = need(KvCache::open(path));
    const Sequence found = sequence_of(cache);
    const bool untouched = found.states() == sequence_before().states();
    REQUIRE((untouched || found.states() == dropped.states() || found.states() == added.states()));
    seen_before = seen_before || untouched;
    seen_after = seen_after || found.states() == added.states();
  }
  CHECK(seen_before);
  CHECK(seen_after);
}
#endif
