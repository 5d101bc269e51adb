// What a session costs among 5,000 others: to resume, to go on and save, to branch, to list all, to
// remove one. Run it on an idle machine: build/bench/session_bench. The store lies in /dev/shm.

#include <benchmark/benchmark.h>

#include <esker/esker.hpp>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "need.hpp"
#include "scratch.hpp"

namespace {

using TokenList = std::vector<std::int32_t>;

constexpr int session_count = 5000;
constexpr std::uint32_t trunk_tokens = 8000;
constexpr std::uint32_t turn_tokens = 100;

/// Appends `count` tokens; every row gets the same bytes, of which only the cost matters here.
void talk(esker::Session& session, std::uint32_t count) {
  TokenList tokens(count);
  std::iota(tokens.begin(), tokens.end(), static_cast<std::int32_t>(session.tokens()));
  auto room = need(session.append(tokens));
  const esker::TokenRange missing = room.missing();
  const std::uint32_t row_bytes = session.geometry().row_bytes(0, esker::Plane::key);
  const std::vector<std::byte> rows(std::size_t{missing.size()} * row_bytes);
  if (!missing.empty()) need(room.write(0, esker::Plane::key, missing.begin, rows));
  need(std::move(room).publish());
}

/// A store with a trunk of 8,000 tokens and its 5,000 branches; goes when the program ends.
class Chats {
 public:
  Chats() : store_(make()), trunk_(need(esker::Session::create(store_, "trunk"))) {
    talk(trunk_, trunk_tokens);
    need(trunk_.save());
    for (int i = 0; i < session_count; ++i) need(trunk_.fork("chat " + std::to_string(i)));
  }
  [[nodiscard]] esker::Store& store() noexcept { return store_; }
  [[nodiscard]] esker::Session& trunk() noexcept { return trunk_; }

 private:
  esker::Store make() {
    esker::Geometry geometry;
    geometry.layers = {{64, 0}};
    geometry.dtype = "i8";
    esker::Options options;
    options.capacity_bytes = std::uint64_t{4} << 30;
    options.segment_bytes = std::uint64_t{64} << 20;
    return need(esker::Store::create(scratch_ / "chats", geometry, {}, options));
  }

  Scratch scratch_{"/dev/shm"};
  esker::Store store_;
  esker::Session trunk_;
};

Chats& chats() {
  static Chats all;
  return all;
}

void resume(benchmark::State& state) {
  esker::Store& store = chats().store();
  int at = 0;
  for (auto _ : state) {
    const std::string name = "chat " + std::to_string(at++ % session_count);
    benchmark::DoNotOptimize(need(esker::Session::resume(store, name)));
  }
}
BENCHMARK(resume)->Unit(benchmark::kMicrosecond);

void append_and_save(benchmark::State& state) {
  auto session = need(esker::Session::resume(chats().store(), "chat 17"));
  for (auto _ : state) {
    talk(session, turn_tokens);
    need(session.save());
  }
}
BENCHMARK(append_and_save)->Unit(benchmark::kMicrosecond)->Iterations(100);

void fork_one(benchmark::State& state) {
  const std::vector<std::string> name{"branch"};
  for (auto _ : state) {
    { const auto branch = need(chats().trunk().fork(name[0])); }
    state.PauseTiming();
    need(esker::Session::remove(chats().store(), name));
    state.ResumeTiming();
  }
}
BENCHMARK(fork_one)->Name("fork")->Unit(benchmark::kMicrosecond)->Iterations(20);

void remove_one(benchmark::State& state) {
  const std::vector<std::string> name{"branch"};
  for (auto _ : state) {
    state.PauseTiming();
    { const auto branch = need(chats().trunk().fork(name[0])); }
    state.ResumeTiming();
    need(esker::Session::remove(chats().store(), name));
  }
}
BENCHMARK(remove_one)->Name("remove")->Unit(benchmark::kMicrosecond)->Iterations(10);

void list_all(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(need(esker::Session::list(chats().store())));
}
BENCHMARK(list_all)->Name("list")->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
