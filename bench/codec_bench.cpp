// What the codecs make of real KV rows: ratio, and speed beside memcpy of the same rows in the same
// run. `codec_bench FILE.slot…` takes sequence files of llama.cpp; of one in f16 it also shows the
// same rows rounded to bf16.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#ifdef ESKER_BENCH_BLOSC
#include <blosc.h>
#endif
#include <lz4.h>
#include <zstd.h>

#include "codec/codec.hpp"
#include "codec/float_bits.hpp"
#include "format/snapshot_file.hpp"
#include "llama/seq_reader.hpp"
#include "need.hpp"

namespace {

using Bytes = std::vector<std::byte>;
using esker::Compression;
using esker::Lossy;
using esker::Plane;
using esker::detail::ChunkCoding;
using esker::detail::CodecChoice;
using esker::detail::CodecMemory;
using esker::detail::RowShape;

/// Chunks as a snapshot has them: rows of one plane, up to 1 MiB.
struct Rows {
  std::string dtype;
  Plane plane = Plane::key;
  RowShape shape;
  std::vector<Bytes> chunks;
  [[nodiscard]] double bytes() const {
    double sum = 0;
    for (const Bytes& chunk : chunks) sum += static_cast<double>(chunk.size());
    return sum;
  }
};

struct Coder {
  std::string name;
  // Returns the stored bytes; the decoder gets the index of the chunk as well.
  std::function<void(const Rows&, std::size_t, Bytes&)> encode;
  std::function<void(const Rows&, std::size_t, const Bytes&, Bytes&)> decode;
  bool exact = true;
};

void need_true(bool good, const char* what) {
  if (good) return;
  std::cerr << what << "\n";
  std::exit(1);
}

/// GB/s of the fastest of some passes over all chunks.
double speed(const Rows& rows, const std::function<void(std::size_t)>& run) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  double spent = 0;
  for (int pass = 0; pass < 5 || (spent < 0.3 && pass < 1000); ++pass) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < rows.chunks.size(); ++i) run(i);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds);
    spent += seconds;
  }
  return rows.bytes() / best / 1e9;
}

double order_0_bits(const Bytes& chunk, std::size_t first, std::size_t step) {
  std::vector<double> met(256);
  double count = 0;
  for (std::size_t i = first; i < chunk.size(); i += step, ++count) {
    ++met[std::to_integer<std::size_t>(chunk[i])];
  }
  double bits = 0;
  for (const double times : met) {
    if (times > 0) bits -= times * std::log2(times / count);
  }
  return bits;
}

/// What an ideal entropy coder of each byte plane would reach.
double order_0_ratio(const Rows& rows) {
  double bits = 0;
  for (const Bytes& chunk : rows.chunks) {
    for (std::size_t i = 0; i < rows.shape.element_bytes; ++i) {
      bits += order_0_bits(chunk, i, rows.shape.element_bytes);
    }
  }
  return rows.bytes() * 8 / bits;
}

Coder ours(const std::string& name, CodecChoice choice) {
  const auto memory = std::make_shared<CodecMemory>();
  const auto codings = std::make_shared<std::vector<ChunkCoding>>();
  return {name,
          [=](const Rows& rows, std::size_t i, Bytes& stored) {
            codings->resize(rows.chunks.size());
            (*codings)[i] = need(encode_chunk(rows.chunks[i], rows.shape, choice, *memory, stored));
          },
          [=](const Rows& rows, std::size_t i, const Bytes& stored, Bytes& out) {
            need(decode_chunk((*codings)[i], rows.shape, stored, out, *memory, "chunk"));
          },
          choice.lossy == Lossy::none};
}

Coder plain_lz4() {
  return {"plain lz4",
          [](const Rows& rows, std::size_t i, Bytes& stored) {
            const Bytes& chunk = rows.chunks[i];
            const int bound = LZ4_compressBound(static_cast<int>(chunk.size()));
            stored.resize(static_cast<std::size_t>(bound));
            const int length = LZ4_compress_default(reinterpret_cast<const char*>(chunk.data()),
                                                    reinterpret_cast<char*>(stored.data()),
                                                    static_cast<int>(chunk.size()), bound);
            stored.resize(static_cast<std::size_t>(length));
          },
          [](const Rows&, std::size_t, const Bytes& stored, Bytes& out) {
            LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()),
                                reinterpret_cast<char*>(out.data()),
                                static_cast<int>(stored.size()), static_cast<int>(out.size()));
          }};
}

Coder plain_zstd() {
  return {
      "plain zstd",
      [](const Rows& rows, std::size_t i, Bytes& stored) {
        const Bytes& chunk = rows.chunks[i];
        stored.resize(ZSTD_compressBound(chunk.size()));
        stored.resize(ZSTD_compress(stored.data(), stored.size(), chunk.data(), chunk.size(), 3));
      },
      [](const Rows&, std::size_t, const Bytes& stored, Bytes& out) {
        ZSTD_decompress(out.data(), out.size(), stored.data(), stored.size());
      }};
}

#ifdef ESKER_BENCH_BLOSC
Coder blosc(const std::string& codec) {
  return {"c-blosc shuffle + " + codec,
          [=](const Rows& rows, std::size_t i, Bytes& stored) {
            const Bytes& chunk = rows.chunks[i];
            stored.resize(chunk.size() + BLOSC_MAX_OVERHEAD);
            const int length =
                blosc_compress_ctx(5, BLOSC_SHUFFLE, rows.shape.element_bytes, chunk.size(),
                                   chunk.data(), stored.data(), stored.size(), codec.c_str(), 0, 1);
            need_true(length > 0, "blosc did not compress");
            stored.resize(static_cast<std::size_t>(length));
          },
          [](const Rows&, std::size_t, const Bytes& stored, Bytes& out) {
            blosc_decompress_ctx(stored.data(), out.data(), out.size(), 1);
          }};
}
#endif

std::vector<Coder> coders() {
  std::vector<Coder> all{plain_lz4(), plain_zstd()};
#ifdef ESKER_BENCH_BLOSC
  all.push_back(blosc("lz4"));
  all.push_back(blosc("zstd"));
#endif
  all.push_back(ours("**esker lz4**", {Compression::lz4, 0, Lossy::none}));
  all.push_back(ours("**esker zstd**", {Compression::zstd, 0, Lossy::none}));
  all.push_back(ours("esker zstd, level 19", {Compression::zstd, 19, Lossy::none}));
  all.push_back(ours("esker q8", {Compression::lz4, 0, Lossy::q8}));
  all.push_back(ours("esker q4", {Compression::lz4, 0, Lossy::q4}));
  return all;
}

void show(const Rows& rows, const Coder& coder) {
  std::vector<Bytes> stored(rows.chunks.size());
  const double encode = speed(rows, [&](std::size_t i) { coder.encode(rows, i, stored[i]); });
  std::vector<Bytes> outs;
  for (const Bytes& chunk : rows.chunks) outs.emplace_back(chunk.size());
  const double decode =
      speed(rows, [&](std::size_t i) { coder.decode(rows, i, stored[i], outs[i]); });
  double length = 0;
  for (const Bytes& one : stored) length += static_cast<double>(one.size());
  need_true(!coder.exact || outs == rows.chunks, "rows came back changed");
  std::printf("| %s | %s | %s | %.3f | %.2f | %.2f |\n", rows.dtype.c_str(),
              rows.plane == Plane::key ? "K" : "V", coder.name.c_str(), rows.bytes() / length,
              encode, decode);
}

void show_all(const Rows& rows) {
  std::vector<Bytes> outs;
  for (const Bytes& chunk : rows.chunks) outs.emplace_back(chunk.size());
  const double copy = speed(rows, [&](std::size_t i) {
    std::memcpy(outs[i].data(), rows.chunks[i].data(), outs[i].size());
  });
  std::printf("| %s | %s | memcpy; order-0 bound of the byte planes | %.3f | %.2f | %.2f |\n",
              rows.dtype.c_str(), rows.plane == Plane::key ? "K" : "V", order_0_ratio(rows), copy,
              copy);
  for (const Coder& coder : coders()) show(rows, coder);
}

Rows rows_of(const esker::cli::llama::SeqFile& file, Plane plane) {
  const esker::Geometry geometry = file.geometry(16);
  Rows rows;
  rows.dtype = geometry.dtype;
  rows.plane = plane;
  const auto tokens = static_cast<std::uint32_t>(file.tokens().size());
  for (std::uint32_t layer = 0; layer < geometry.layers.size(); ++layer) {
    const std::uint32_t row_bytes = geometry.row_bytes(layer, plane);
    rows.shape = RowShape::of(rows.dtype, plane, row_bytes);
    const std::uint32_t step = esker::detail::chunk_rows(row_bytes);
    for (std::uint32_t first = 0; first < tokens; first += step) {
      const esker::TokenRange range{first, std::min(tokens, first + step)};
      rows.chunks.emplace_back(std::size_t{range.size()} * row_bytes);
      need(file.rows(layer, plane, range, rows.chunks.back()));
    }
  }
  return rows;
}

Rows rounded_to_bf16(Rows rows) {
  using esker::detail::BrainBits;
  using esker::detail::HalfBits;
  rows.dtype = "bf16 (rounded)";
  rows.shape = RowShape::of("bf16", rows.plane, rows.shape.row_bytes);
  for (Bytes& chunk : rows.chunks) {
    for (std::size_t i = 0; i < chunk.size(); i += 2) {
      std::uint16_t word = 0;
      std::memcpy(&word, &chunk[i], sizeof word);
      word = BrainBits::from_float(HalfBits::to_float(word));
      std::memcpy(&chunk[i], &word, sizeof word);
    }
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "Usage: codec_bench FILE.slot...\n";
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    const auto file = need(esker::cli::llama::SeqFile::open(argv[i]));
    std::printf("\n%s: %zu tokens\n\n", argv[i], file.tokens().size());
    std::puts(
        "| dtype | plane | codec | ratio | encode GB/s | decode GB/s |\n|---|---|---|---|---|---|");
    for (const Plane plane : {Plane::key, Plane::value}) {
      const Rows rows = rows_of(file, plane);
      show_all(rows);
      if (rows.dtype == "f16") show_all(rounded_to_bf16(rows));
    }
  }
  return 0;
}
