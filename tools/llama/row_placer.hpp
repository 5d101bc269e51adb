#pragma once

#include <cstdint>
#include <esker/options.hpp>
#include <esker/prefix.hpp>
#include <esker/result.hpp>
#include <span>

#include "llama/output_file.hpp"
#include "llama/seq_writer.hpp"

namespace esker::cli::llama {

/// Writes the first `tokens` rows of every place from the mapped store straight into the file, with
/// one thread per core. Each plane is verified before it is written; an error leaves the file
/// unfinished. `progress` is called on the calling thread.
[[nodiscard]] Result<void> place_rows(const Prefix& prefix, std::uint32_t tokens,
                                      std::span<const RowPlace> places, const OutputFile& file,
                                      const Progress& progress);

}  // namespace esker::cli::llama
