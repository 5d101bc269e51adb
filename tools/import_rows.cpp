#include "import_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace esker::cli {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{16} << 20;

Result<void> copy_plane(const llama::SeqFile& file, std::uint32_t layer, Plane plane,
                        Reservation& reservation) {
  const std::size_t row_bytes = file.layout().row_bytes(layer, plane);
  const TokenRange missing = reservation.missing();
  if (row_bytes == 0 || missing.empty()) return {};
  const auto step = static_cast<std::uint32_t>(
      std::clamp<std::size_t>(chunk_bytes / row_bytes, 1, missing.size()));
  std::vector<std::byte> chunk(step * row_bytes);
  for (std::uint32_t begin = missing.begin; begin < missing.end; begin += step) {
    const TokenRange range{begin, std::min(begin + step, missing.end)};
    const auto rows = std::span(chunk).first(range.size() * row_bytes);
    auto done = file.rows(layer, plane, range, rows);
    if (done) done = reservation.write(layer, plane, begin, rows);
    if (!done) return done;
  }
  return {};
}

}  // namespace

Result<Written> write_missing(const llama::SeqFile& file, const Geometry& geometry,
                              Reservation& reservation, const Progress& progress) {
  const TokenRange missing = reservation.missing();
  const auto layers = static_cast<std::uint32_t>(geometry.layers.size());
  Written written;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    for (const Plane plane : {Plane::key, Plane::value}) {
      const auto copied = copy_plane(file, layer, plane, reservation);
      if (!copied) return tl::make_unexpected(copied.error());
      if (missing.empty()) continue;
      written.bytes += std::uint64_t{missing.size()} * geometry.row_bytes(layer, plane);
      if (progress) progress(written.bytes, missing.size() * geometry.token_bytes());
    }
  }
  // A server may save over a file that is being read.
  if (const auto same = file.check_unchanged(); !same) return tl::make_unexpected(same.error());
  if (!missing.empty()) {
    const std::uint32_t block = geometry.block_tokens;
    written.tokens = missing.size();
    written.blocks = (missing.end + block - 1) / block - missing.begin / block;
  }
  return written;
}

}  // namespace esker::cli
