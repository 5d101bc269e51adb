#pragma once

#include <cstddef>
#include <esker/options.hpp>
#include <span>

namespace esker::detail {

struct CompressWay {
  Compression method = Compression::lz4;
  int level = 0;           ///< of zstd; 0: what is usual
  bool of_planes = false;  ///< bytes of equal meaning stand together, and short matches are chance
};

/// The longest that any method makes of `bytes` in at most 8 parts.
[[nodiscard]] std::size_t compress_bound(std::size_t bytes) noexcept;

/// Compresses into `out`, which has room for `compress_bound`. `part_ends` says where `in` changes
/// its nature, the last is its end. The length, or 0 when the library could not.
[[nodiscard]] std::size_t compress(const CompressWay& way, std::span<const std::byte> in,
                                   std::span<const std::size_t> part_ends,
                                   std::span<std::byte> out) noexcept;

/// True when `in` decoded to exactly `out`. Never reads or writes outside of the two, and allocates
/// nothing that grows with what `in` claims.
[[nodiscard]] bool decompress(Compression method, std::span<const std::byte> in,
                              std::span<std::byte> out) noexcept;

}  // namespace esker::detail
