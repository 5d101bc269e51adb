#pragma once

#include <cstdint>
#include <esker/options.hpp>
#include <esker/reservation.hpp>
#include <esker/result.hpp>

#include "llama/seq_reader.hpp"

namespace esker::cli {

/// What an import wrote, in numbers.
struct Written {
  std::uint32_t tokens = 0;
  std::uint32_t blocks = 0;
  std::uint64_t bytes = 0;
};

/// Hands the file's rows over that `reservation` lacks, a few megabytes at a time, and proves that
/// the file is still the one that was opened. `reservation` counts tokens as the file does.
[[nodiscard]] Result<Written> write_missing(const llama::SeqFile& file, const Geometry& geometry,
                                            Reservation& reservation, const Progress& progress);

}  // namespace esker::cli
