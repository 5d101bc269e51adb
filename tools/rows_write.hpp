#pragma once

#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/options.hpp>
#include <esker/result.hpp>
#include <string>

#include "llama/byte_sink.hpp"
#include "llama/output_file.hpp"
#include "rows_source.hpp"

namespace esker::cli {

/// One plane of a prefix, or a part of it.
struct PlaneRange {
  std::uint32_t layer = 0;
  Plane plane = Plane::key;
  TokenRange tokens;
};

/// Writes rows one after the other, a few megabytes at a time.
[[nodiscard]] Result<void> put_rows(const RowsSource& source, const PlaneRange& range,
                                    llama::ByteSink& sink);

/// The head of a .npy file, version 1.0, of a matrix in C order: a multiple of 64 bytes.
[[nodiscard]] std::string npy_head(std::string_view descr, std::uint64_t rows,
                                   std::uint64_t columns);

/// Writes the plane as a matrix of tokens × elements for `numpy.load`, and returns how many bytes.
/// Into a pipe nothing goes before all of it has checked.
[[nodiscard]] Result<std::uint64_t> write_npy(const RowsSource& source, const PlaneRange& range,
                                              llama::OutputFile& output);

/// Writes all planes and the tokens for `safetensors.safe_open`, and returns how many bytes.
[[nodiscard]] Result<std::uint64_t> write_tensors(const RowsSource& source,
                                                  llama::OutputFile& output,
                                                  const Progress& progress);

/// Reads all rows once: what goes into a pipe cannot be taken back. Files need it not.
[[nodiscard]] Result<void> prove_rows(const RowsSource& source, const llama::OutputFile& output);

}  // namespace esker::cli
