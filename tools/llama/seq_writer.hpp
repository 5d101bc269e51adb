#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/options.hpp>
#include <esker/result.hpp>
#include <functional>
#include <span>
#include <vector>

#include "llama/byte_sink.hpp"
#include "llama/layout.hpp"

namespace esker::cli::llama {

/// Fills `out` with the rows of one layer and plane for `range`.
using RowFill = std::function<Result<void>(std::uint32_t layer, Plane plane, TokenRange range,
                                           std::span<std::byte> out)>;

/// Writes a sequence file of this layout, front to back: the cells in order, in stream 0. Asks
/// `fill` for a few megabytes at a time; only V by channels is collected in up to 64 MiB, and asked
/// for again where that is not enough. The sink is flushed. An error leaves half a file behind: the
/// sink must be one that the caller can throw away.
[[nodiscard]] Result<void> write_sequence(const SeqLayout& layout, Tokens tokens,
                                          const RowFill& fill, ByteSink& sink,
                                          const Progress& progress = {});

/// Where the rows of one layer and plane belong in a file.
struct RowPlace {
  std::uint32_t layer = 0;
  Plane plane = Plane::key;
  std::uint64_t offset = 0;
};

/// Writes everything but the rows and says where those belong: for a file whose rows several
/// threads put in place. Only for layouts that keep V by rows.
[[nodiscard]] Result<std::vector<RowPlace>> write_frame(const SeqLayout& layout, Tokens tokens,
                                                        ByteSink& sink);

}  // namespace esker::cli::llama
