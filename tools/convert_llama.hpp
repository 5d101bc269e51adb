#pragma once

#include <cstdint>
#include <esker/options.hpp>
#include <esker/result.hpp>

#include "args.hpp"
#include "convert_kinds.hpp"
#include "llama/layout.hpp"
#include "llama/output_file.hpp"
#include "rows_source.hpp"

namespace esker::cli {

/// How the new file of llama.cpp is to be laid out: as `--like`, else as the input, if that is one.
/// `Errc::incompatible` names what the rows of `source` cannot become.
[[nodiscard]] Result<llama::SeqLayout> converted_layout(const ConvertArgs& args, FileKind to,
                                                        const RowsSource& source);

/// Writes the source's rows in this layout; returns how many bytes.
[[nodiscard]] Result<std::uint64_t> write_llama(const llama::SeqLayout& layout,
                                                const RowsSource& source, llama::OutputFile& output,
                                                const Progress& progress);

}  // namespace esker::cli
