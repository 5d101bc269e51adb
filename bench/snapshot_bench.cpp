// What it costs to write a store's rows to a snapshot and to bring them back, beside copying as
// many bytes. Run it on an idle machine: build/bench/snapshot_bench. Everything lies below
// $TMPDIR (else /dev/shm).

#include <benchmark/benchmark.h>

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <esker/esker.hpp>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "need.hpp"
#include "scratch.hpp"

namespace {

constexpr std::uint32_t token_count = 4096;

esker::Geometry geometry() { return need(esker::Geometry::uniform(28, 8, 128, "bf16", 32)); }

std::vector<std::int32_t> prompt() {
  std::vector<std::int32_t> tokens(token_count);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

/// Rows as bf16 numbers of a normal distribution: about as random as KV rows are.
std::vector<std::uint16_t> normal_rows(std::size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> rows(count);
  for (std::uint16_t& each : rows) {
    const float value = normal(random);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    each = static_cast<std::uint16_t>(bits >> 16);
  }
  return rows;
}

Scratch scratch = Scratch::below_tmpdir_or("/dev/shm");

/// A full store, and one that imports go into.
class Place {
 public:
  Place() : full_(make("full")), other_(make("other")) {
    const esker::Geometry shape = geometry();
    const std::uint32_t row_bytes = shape.row_bytes(0, esker::Plane::key);
    const auto rows = normal_rows(std::size_t{token_count} * row_bytes / 2);
    esker::Reservation room = need(full_.reserve(prompt()));
    for (std::uint32_t layer = 0; layer < shape.layers.size(); ++layer) {
      for (const esker::Plane plane : {esker::Plane::key, esker::Plane::value}) {
        need(room.write(layer, plane, 0, std::as_bytes(std::span(rows))));
      }
    }
    static_cast<void>(need(std::move(room).publish()));
  }
  [[nodiscard]] esker::Store& full() noexcept { return full_; }
  [[nodiscard]] esker::Store& other() noexcept { return other_; }

 private:
  static esker::Store make(const std::string& name) {
    esker::Options options;
    options.capacity_bytes = std::uint64_t{2} << 30;
    options.segment_bytes = std::uint64_t{256} << 20;
    return need(esker::Store::create(scratch / name, geometry(), {}, options));
  }

  esker::Store full_;
  esker::Store other_;
};

Place& place() {
  static Place only;
  return only;
}

std::uint64_t all_bytes() { return token_count * geometry().token_bytes(); }

void count_bytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * all_bytes()));
}

esker::ExportOptions how(const benchmark::State& state) {
  esker::ExportOptions options;
  options.compression = static_cast<esker::Compression>(state.range(0));
  options.threads = static_cast<std::uint32_t>(state.range(1));
  options.replace = true;
  return options;
}

void copy_memory(benchmark::State& state) {
  const auto threads = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> from(all_bytes(), std::byte{1});
  std::vector<std::byte> to(all_bytes(), std::byte{2});
  for (auto _ : state) {
    const std::size_t part = from.size() / threads;
    std::vector<std::jthread> workers;
    for (std::size_t i = 1; i < threads; ++i) {
      workers.emplace_back(
          [&, i] { std::memcpy(to.data() + i * part, from.data() + i * part, part); });
    }
    std::memcpy(to.data(), from.data(), part);
    workers.clear();
    benchmark::ClobberMemory();
  }
  count_bytes(state);
}

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

int open_file(const std::string& name) {
  const int fd = ::open((scratch / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) std::exit(1);
  return fd;
}

/// The floor under an export: the kernel making the pages of a new file, or filling old ones.
void write_file(benchmark::State& state) {
  const std::vector<std::byte> rows(all_bytes(), std::byte{1});
  for (auto _ : state) {
    if (state.range(0) != 0) std::filesystem::remove(scratch / "rows");
    const int fd = open_file("rows");
    for (std::size_t at = 0; at < rows.size(); at += piece_bytes) {
      const std::size_t now = std::min(rows.size() - at, piece_bytes);
      if (::pwrite(fd, rows.data() + at, now, static_cast<off_t>(at)) <= 0) std::exit(1);
    }
    ::close(fd);
  }
  std::filesystem::remove(scratch / "rows");
  count_bytes(state);
}

/// The floor under an import: reading a file and writing over another, nothing checked.
void copy_file(benchmark::State& state) {
  const int from = open_file("from");
  const int to = open_file("to");
  std::vector<std::byte> piece(piece_bytes, std::byte{1});
  const auto pieces = static_cast<off_t>(all_bytes() / piece_bytes);
  const auto offset = [](off_t i) { return i * static_cast<off_t>(piece_bytes); };
  for (const int fd : {from, to}) {
    for (off_t i = 0; i < pieces; ++i) {
      if (::pwrite(fd, piece.data(), piece.size(), offset(i)) <= 0) std::exit(1);
    }
  }
  for (auto _ : state) {
    for (off_t i = 0; i < pieces; ++i) {
      if (::pread(from, piece.data(), piece.size(), offset(i)) <= 0) std::exit(1);
      if (::pwrite(to, piece.data(), piece.size(), offset(i)) <= 0) std::exit(1);
    }
  }
  for (const int fd : {from, to}) ::close(fd);
  for (const char* name : {"from", "to"}) std::filesystem::remove(scratch / name);
  count_bytes(state);
}

/// To where writing costs nothing: what Esker itself does.
void export_nowhere(benchmark::State& state) {
  const int fd = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (auto _ : state) need(export_snapshot(place().full(), fd, "nowhere", how(state)));
  ::close(fd);
  count_bytes(state);
}

void export_store(benchmark::State& state) {
  esker::ExportReport report;
  const std::string file = scratch / "out.esnap";
  for (auto _ : state) report = need(export_snapshot(place().full(), file, how(state)));
  count_bytes(state);
  state.counters["ratio"] =
      static_cast<double>(report.raw_bytes) / static_cast<double>(report.file_bytes);
}

/// Into blocks that are free but resident, as those of a store that has been in use.
void import_store(benchmark::State& state) {
  const std::string file = scratch / "in.esnap";
  need(export_snapshot(place().full(), file, how(state)));
  esker::ImportOptions options;
  options.threads = static_cast<std::uint32_t>(state.range(1));
  esker::Store& store = place().other();
  const auto bring = [&] {
    esker::Snapshot snapshot = need(esker::Snapshot::open(file));
    const auto report = need(import_snapshot(store, snapshot, options));
    if (report.stored_blocks != token_count / 32) std::exit(1);
  };
  need(store.evict(0));
  bring();
  for (auto _ : state) {
    state.PauseTiming();
    need(store.evict(0));
    state.ResumeTiming();
    bring();
  }
  count_bytes(state);
}

/// Nothing is missing: what a second import of the same file costs.
void import_again(benchmark::State& state) {
  const std::string file = scratch / "in.esnap";
  need(export_snapshot(place().full(), file, how(state)));
  for (auto _ : state) {
    esker::Snapshot snapshot = need(esker::Snapshot::open(file));
    if (need(import_snapshot(place().full(), snapshot)).stored_blocks != 0) std::exit(1);
  }
  count_bytes(state);
}

}  // namespace

BENCHMARK(copy_memory)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(write_file)->Arg(0)->Arg(1)->ArgName("new")->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(copy_file)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(export_nowhere)
    ->ArgsProduct({{0, 1, 2}, {1, 2}})
    ->ArgNames({"codec", "threads"})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(export_store)
    ->ArgsProduct({{0, 1, 2}, {1, 2}})
    ->ArgNames({"codec", "threads"})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(import_store)
    ->ArgsProduct({{0, 1, 2}, {1, 2}})
    ->ArgNames({"codec", "threads"})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(import_again)
    ->Args({0, 1})
    ->ArgNames({"codec", "threads"})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
