// What a handle costs: opening, looking up, copying, storing; each beside a memcpy of the same
// bytes. Run it on an idle machine: build/bench/store_bench. The store lies below $TMPDIR (else
// /dev/shm).

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <esker/esker.hpp>
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

Scratch scratch = Scratch::below_tmpdir_or("/dev/shm");

TokenList prompt(std::uint32_t tokens, std::int32_t first) {
  TokenList list(tokens);
  std::iota(list.begin(), list.end(), first);
  return list;
}

/// Stores `tokens`; every row gets the same bytes, of which only the cost matters here.
void put(esker::Store& store, const TokenList& tokens, const std::vector<std::byte>& rows) {
  auto room = need(store.reserve(tokens));
  const esker::TokenRange missing = room.missing();
  const esker::Geometry& geometry = store.geometry();
  for (std::uint32_t layer = 0; layer < geometry.layers.size() && !missing.empty(); ++layer) {
    for (const auto plane : {esker::Plane::key, esker::Plane::value}) {
      const std::size_t bytes = std::size_t{missing.size()} * geometry.row_bytes(layer, plane);
      if (bytes == 0) continue;
      const auto done = room.write(layer, plane, missing.begin, std::span(rows).first(bytes));
      if (!done) std::exit(1);
    }
  }
  need(std::move(room).publish());
}

/// `blocks` blocks of tiny rows, in paths of 128 blocks.
esker::Store tiny_rows(std::uint32_t blocks) {
  constexpr std::uint32_t path_tokens = 4096;
  esker::Geometry geometry;
  geometry.layers = {{8, 0}};
  geometry.dtype = "i8";
  esker::Options options;
  options.capacity_bytes = std::uint64_t{1} << 30;
  const std::string path = scratch / ("tiny-" + std::to_string(blocks));
  if (fs::exists(path)) return need(esker::Store::open(path));
  auto store = need(esker::Store::create(path, geometry, {}, options));
  const std::vector<std::byte> rows(std::size_t{path_tokens} * 8);
  for (std::uint32_t at = 0; at < blocks; at += path_tokens / geometry.block_tokens) {
    put(store, prompt(path_tokens, static_cast<std::int32_t>(at) * 64), rows);
  }
  return store;
}

/// SmolLM2-135M: 30 layers, 3 KV heads of 64, f16.
esker::Store smollm2() {
  esker::Options options;
  options.capacity_bytes = std::uint64_t{1} << 30;
  const auto geometry = need(esker::Geometry::uniform(30, 3, 64, "f16"));
  return need(esker::Store::open_or_create(scratch / "smollm2", geometry, {}, options));
}

constexpr std::uint32_t long_prompt = 6000;
constexpr std::size_t plane_bytes = std::size_t{long_prompt} * 384;
constexpr std::size_t prompt_bytes = plane_bytes * 60;

void open_live(benchmark::State& state) {
  const auto blocks = static_cast<std::uint32_t>(state.range(0));
  const esker::Store holder = tiny_rows(blocks);
  const std::string path = scratch / ("tiny-" + std::to_string(blocks));
  for (auto _ : state) benchmark::DoNotOptimize(need(esker::Store::open(path)));
  state.counters["blocks"] = static_cast<double>(holder.stats().blocks_ready);
}
BENCHMARK(open_live)->Arg(1'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

void rebuild(benchmark::State& state) {
  const auto blocks = static_cast<std::uint32_t>(state.range(0));
  static_cast<void>(tiny_rows(blocks));
  const std::string path = scratch / ("tiny-" + std::to_string(blocks));
  for (auto _ : state) {
    fs::remove(path + "/control");
    benchmark::DoNotOptimize(need(esker::Store::open(path)));
  }
}
BENCHMARK(rebuild)->Arg(100'000)->Unit(benchmark::kMillisecond);

void lookup_4096_tokens(benchmark::State& state) {
  const auto blocks = static_cast<std::uint32_t>(state.range(0));
  const esker::Store store = tiny_rows(blocks);
  std::int32_t path = 0;
  for (auto _ : state) {
    const TokenList tokens = prompt(4096, path);
    const esker::Prefix prefix = store.lookup(tokens);
    if (prefix.tokens() != 4096) state.SkipWithError("a stored prompt was not found");
    path = (path + 128 * 64) % (static_cast<std::int32_t>(blocks) * 64 / 8192 * 8192);
  }
}
BENCHMARK(lookup_4096_tokens)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

void memcpy_prompt(benchmark::State& state) {
  const std::vector<std::byte> from(prompt_bytes, std::byte{1});
  std::vector<std::byte> to(prompt_bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), prompt_bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * prompt_bytes));
}
BENCHMARK(memcpy_prompt)->Unit(benchmark::kMillisecond);

/// Copies all rows of the prompt; `fresh` handles have verified nothing yet.
void copy_prompt(benchmark::State& state, bool fresh) {
  esker::Store store = smollm2();
  const TokenList tokens = prompt(long_prompt, 0);
  put(store, tokens, std::vector<std::byte>(plane_bytes, std::byte{3}));
  std::vector<std::byte> out(plane_bytes * 60);
  for (auto _ : state) {
    state.PauseTiming();
    esker::Store reader = fresh ? smollm2() : std::move(store);
    state.ResumeTiming();
    const esker::Prefix prefix = reader.lookup(tokens);
    std::span<std::byte> rest(out);
    for (std::uint32_t layer = 0; layer < 30; ++layer) {
      for (const auto plane : {esker::Plane::key, esker::Plane::value}) {
        if (!prefix.copy(layer, plane, {}, rest.first(plane_bytes))) std::exit(1);
        rest = rest.subspan(plane_bytes);
      }
    }
    state.PauseTiming();
    if (!fresh) store = std::move(reader);
    state.ResumeTiming();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * prompt_bytes));
}
BENCHMARK_CAPTURE(copy_prompt, first_use, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(copy_prompt, verified, false)->Unit(benchmark::kMillisecond);

void put_prompt(benchmark::State& state) {
  esker::Store store = smollm2();
  const std::vector<std::byte> rows(plane_bytes, std::byte{3});
  std::int32_t first = 1'000'000;
  for (auto _ : state) put(store, prompt(long_prompt, first += long_prompt), rows);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * prompt_bytes));
}
BENCHMARK(put_prompt)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
