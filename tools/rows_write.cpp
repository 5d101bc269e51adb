#include "rows_write.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "plane_type.hpp"

namespace esker::cli {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{4} << 20;

/// Hands the rows over a few megabytes at a time.
template <class Use>
Result<void> for_rows(const RowsSource& source, const PlaneRange& range, const Use& use) {
  const std::size_t row_bytes = source.geometry().row_bytes(range.layer, range.plane);
  if (row_bytes == 0 || range.tokens.empty()) return {};
  const auto step = static_cast<std::uint32_t>(
      std::clamp<std::size_t>(chunk_bytes / row_bytes, 1, range.tokens.size()));
  std::vector<std::byte> chunk(step * row_bytes);
  for (std::uint32_t begin = range.tokens.begin; begin < range.tokens.end;) {
    const std::uint32_t end = begin + std::min(step, range.tokens.end - begin);
    const auto rows = std::span(chunk).first((end - begin) * row_bytes);
    auto done = source.copy(range.layer, range.plane, {begin, end}, rows);
    if (done) done = use(rows);
    if (!done) return done;
    begin = end;
  }
  return {};
}

Result<void> prove(const RowsSource& source, const PlaneRange& range) {
  return for_rows(source, range, [](std::span<const std::byte>) -> Result<void> { return {}; });
}

}  // namespace

Result<void> put_rows(const RowsSource& source, const PlaneRange& range, llama::ByteSink& sink) {
  return for_rows(source, range, [&](std::span<const std::byte> rows) { return sink.put(rows); });
}

Result<void> prove_rows(const RowsSource& source, const llama::OutputFile& output) {
  if (output.seekable()) return {};
  const TokenRange all{0, static_cast<std::uint32_t>(source.tokens().size())};
  const auto layers = static_cast<std::uint32_t>(source.geometry().layers.size());
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    for (const Plane plane : {Plane::key, Plane::value}) {
      if (auto proved = prove(source, {layer, plane, all}); !proved) return proved;
    }
  }
  return {};
}

std::string npy_head(std::string_view descr, std::uint64_t rows, std::uint64_t columns) {
  constexpr std::size_t before = 10;  // magic, version, length
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                                 descr, rows, columns);
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  const std::size_t length = text.size();
  std::string head = "\x93NUMPY\x01";
  head += '\0';
  head += static_cast<char>(length & 0xFFU);
  head += static_cast<char>(length >> 8U);
  return head + text;
}

Result<std::uint64_t> write_npy(const RowsSource& source, const PlaneRange& range,
                                llama::OutputFile& output) {
  const PlaneType type = plane_type(source.geometry(), range.layer, range.plane);
  const std::uint32_t row_bytes = source.geometry().row_bytes(range.layer, range.plane);
  const std::string head =
      npy_head(type.numpy, range.tokens.size(), row_bytes / type.element_bytes);
  Result<void> done;
  if (!output.seekable()) done = prove(source, range);
  llama::ByteSink sink(output.fd(), output.name());
  if (done) done = sink.put(std::as_bytes(std::span(head)));
  if (done) done = put_rows(source, range, sink);
  if (done) done = sink.flush();
  if (done) done = source.check_unchanged();
  if (!done) return tl::make_unexpected(done.error());
  return sink.bytes();
}

}  // namespace esker::cli
