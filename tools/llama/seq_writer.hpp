#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/options.hpp>
#include <esker/result.hpp>
#include <functional>
#include <span>

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

}  // namespace esker::cli::llama
