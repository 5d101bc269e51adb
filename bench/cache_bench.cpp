// What a live cache costs: a token of 32 layers, a load from a store, a save to it; each beside
// memcpy of the same bytes. Run it on an idle machine: build/bench/cache_bench. The store and one
// file lie in /dev/shm, the other file below $TMPDIR (else /var/tmp).

#include <benchmark/benchmark.h>

#include <cstring>
#include <esker/esker.hpp>
#include <esker/kv_cache.hpp>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "need.hpp"
#include "scratch.hpp"

namespace {

namespace fs = std::filesystem;
using TokenList = std::vector<std::int32_t>;

Scratch memory_dir("/dev/shm");
Scratch disk_dir = Scratch::below_tmpdir_or("/var/tmp");

// ---- One token at a time ------------------------------------------------------------------------

constexpr std::uint32_t layers = 32;
constexpr std::uint32_t row_bytes = 2048;
constexpr std::uint32_t room = 2048;
constexpr std::size_t token_bytes = std::size_t{2} * layers * row_bytes;

enum class Kind { memory, tmpfs, disk };

esker::KvCache make_cache(Kind kind, const esker::Geometry& geometry, std::uint32_t tokens) {
  if (kind == Kind::memory) return need(esker::KvCache::in_memory(geometry, tokens));
  const std::string path = (kind == Kind::tmpfs ? memory_dir : disk_dir) / "cache";
  fs::remove(path);
  return need(esker::KvCache::create(path, geometry, tokens));
}

void report(benchmark::State& state, std::size_t bytes_per_round) {
  state.SetBytesProcessed(
      static_cast<std::int64_t>(static_cast<std::size_t>(state.iterations()) * bytes_per_round));
}

std::vector<std::byte> token_rows() { return std::vector<std::byte>(token_bytes, std::byte{7}); }

void memcpy_token(benchmark::State& state) {
  const std::vector<std::byte> rows = token_rows();
  std::vector<std::byte> regions(token_bytes * room, std::byte{1});
  std::size_t at = 0;
  for (auto _ : state) {
    for (std::size_t plane = 0; plane < std::size_t{2} * layers; ++plane) {
      std::memcpy(regions.data() + (plane * room + at) * row_bytes, rows.data() + plane * row_bytes,
                  row_bytes);
    }
    benchmark::ClobberMemory();
    at = (at + 1) % room;
  }
  report(state, token_bytes);
}
BENCHMARK(memcpy_token)->Unit(benchmark::kMicrosecond);

void put_token(esker::KvCache& cache, const std::vector<std::byte>& rows) {
  const std::span<const std::byte> all(rows);
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    const std::size_t key = std::size_t{2} * layer * row_bytes;
    need(cache.store(layer, all.subspan(key, row_bytes), all.subspan(key + row_bytes, row_bytes)));
  }
  need(cache.advance());
}

/// Pages that were written before; `fresh`: the first time through, populating included.
void store_token(benchmark::State& state, Kind kind, bool fresh) {
  esker::Geometry geometry;
  geometry.layers.assign(layers, {row_bytes, row_bytes});
  geometry.dtype = "i8";
  const std::vector<std::byte> rows = token_rows();
  esker::KvCache cache = make_cache(kind, geometry, room);
  if (!fresh) {
    while (cache.length() < room) put_token(cache, rows);
    need(cache.truncate(0));
  }
  for (auto _ : state) {
    if (cache.length() == room) {
      state.PauseTiming();
      if (fresh) {
        { const esker::KvCache old = std::move(cache); }
        cache = make_cache(kind, geometry, room);
      } else {
        need(cache.truncate(0));
      }
      state.ResumeTiming();
    }
    put_token(cache, rows);
    benchmark::ClobberMemory();
  }
  report(state, token_bytes);
}
BENCHMARK_CAPTURE(store_token, memory, Kind::memory, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(store_token, tmpfs, Kind::tmpfs, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(store_token, disk, Kind::disk, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(store_token, fresh_memory, Kind::memory, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(store_token, fresh_tmpfs, Kind::tmpfs, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(store_token, fresh_disk, Kind::disk, true)->Unit(benchmark::kMicrosecond);

// ---- Whole prompts: SmolLM2-135M, 30 layers, 3 KV heads of 64, f16 ------------------------------

constexpr std::uint32_t long_prompt = 6000;
constexpr std::size_t plane_bytes = std::size_t{long_prompt} * 384;
constexpr std::size_t prompt_bytes = plane_bytes * 60;

TokenList prompt(std::int32_t first) {
  TokenList list(long_prompt);
  std::iota(list.begin(), list.end(), first);
  return list;
}

esker::Geometry smollm2() { return need(esker::Geometry::uniform(30, 3, 64, "f16")); }

esker::Store open_store(esker::Verify verify) {
  esker::Options options;
  options.capacity_bytes = std::uint64_t{1} << 30;
  options.verify = verify;
  return need(esker::Store::open_or_create(memory_dir / "store", smollm2(), {}, options));
}

void fill(esker::KvCache& cache) {
  const std::vector<std::byte> rows(plane_bytes, std::byte{3});
  for (std::uint32_t layer = 0; layer < 30; ++layer) {
    need(cache.store_rows(layer, long_prompt, rows, rows));
  }
  need(cache.advance(long_prompt));
}

void memcpy_prompt(benchmark::State& state) {
  const std::vector<std::byte> from(prompt_bytes, std::byte{1});
  std::vector<std::byte> to(prompt_bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), prompt_bytes);
    benchmark::ClobberMemory();
  }
  report(state, prompt_bytes);
}
BENCHMARK(memcpy_prompt)->Unit(benchmark::kMillisecond);

/// Into pages that were written before, by a store handle that has read the rows before.
void load_prompt(benchmark::State& state, Kind kind, esker::Verify verify) {
  esker::Store store = open_store(verify);
  esker::KvCache cache = make_cache(kind, smollm2(), long_prompt);
  fill(cache);
  need(cache.save(store, prompt(0)));
  const esker::Prefix prefix = store.lookup(prompt(0));
  need(cache.load(prefix));
  for (auto _ : state) {
    need(cache.load(prefix));
    benchmark::ClobberMemory();
  }
  report(state, prompt_bytes);
}
BENCHMARK_CAPTURE(load_prompt, memory_verify_always, Kind::memory, esker::Verify::always)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_prompt, tmpfs_verify_always, Kind::tmpfs, esker::Verify::always)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_prompt, memory_verified_before, Kind::memory, esker::Verify::first_use)
    ->Unit(benchmark::kMillisecond);

/// A store handle that has mapped and verified nothing yet; `fresh_cache`: new memory as well.
void load_first_use(benchmark::State& state, bool fresh_cache) {
  {
    esker::Store store = open_store(esker::Verify::first_use);
    esker::KvCache cache = make_cache(Kind::memory, smollm2(), long_prompt);
    fill(cache);
    need(cache.save(store, prompt(0)));
  }
  esker::KvCache cache = make_cache(Kind::memory, smollm2(), long_prompt);
  fill(cache);
  for (auto _ : state) {
    state.PauseTiming();
    const esker::Store store = open_store(esker::Verify::first_use);
    if (fresh_cache) cache = make_cache(Kind::memory, smollm2(), long_prompt);
    state.ResumeTiming();
    need(cache.load(store.lookup(prompt(0))));
    benchmark::ClobberMemory();
  }
  report(state, prompt_bytes);
}
BENCHMARK_CAPTURE(load_first_use, warm_cache, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load_first_use, fresh_cache, true)->Unit(benchmark::kMillisecond);

void save_prompt(benchmark::State& state) {
  esker::Store store = open_store(esker::Verify::first_use);
  esker::KvCache cache = make_cache(Kind::memory, smollm2(), long_prompt);
  fill(cache);
  std::int32_t first = 1'000'000;
  for (auto _ : state) {
    const TokenList tokens = prompt(first += static_cast<std::int32_t>(long_prompt));
    need(cache.save(store, tokens));
  }
  report(state, prompt_bytes);
}
BENCHMARK(save_prompt)->Unit(benchmark::kMillisecond);

/// All tokens are new since the last sync.
void sync_prompt(benchmark::State& state, Kind kind) {
  esker::KvCache cache = make_cache(kind, smollm2(), long_prompt);
  fill(cache);
  for (auto _ : state) {
    state.PauseTiming();
    need(cache.truncate(0));
    fill(cache);
    state.ResumeTiming();
    need(cache.sync());
  }
  report(state, prompt_bytes);
}
BENCHMARK_CAPTURE(sync_prompt, tmpfs, Kind::tmpfs)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(sync_prompt, disk, Kind::disk)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
