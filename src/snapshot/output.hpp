#pragma once

#include <esker/snapshot.hpp>
#include <functional>
#include <memory>
#include <string>

#include "archive/byte_sink.hpp"
#include "archive/writer.hpp"

namespace esker::detail {

// What exporting and rewriting have in common.

/// How the rows of a new snapshot are coded.
struct OutputChoice {
  Compression compression = Compression::lz4;
  int level = 0;
  Lossy lossy = Lossy::none;
  std::uint32_t threads = 1;
};

/// `Errc::invalid` unless these choices exist, and unless `dtype` can be quantised if it is to be.
[[nodiscard]] Result<void> check_choice(const OutputChoice& choice, const Geometry& geometry);
/// Threads that a call really uses: one at least, and no absurd number.
[[nodiscard]] std::uint32_t sensible_threads(std::uint32_t wanted) noexcept;
[[nodiscard]] WriterOptions writer_options(const OutputChoice& choice) noexcept;

/// The head of a new file with a fresh id and salt. Rows that were lossy before, or become so, are
/// marked in the model id; `Errc::invalid` when they are lossy in another way already.
[[nodiscard]] Result<SnapshotHead> new_head(const Geometry& geometry, const ModelId& model,
                                            Lossy lossy);
/// What the model id says about rows that are not exact.
[[nodiscard]] Lossy lossy_of(const ModelId& model) noexcept;

/// What the writer has counted.
void add_totals(const WriterTotals& totals, ExportReport& report);

using WriteAll = std::function<Result<ExportReport>(ByteSink&)>;
/// Runs `write` into a file that gets its name when all of it is there.
[[nodiscard]] Result<ExportReport> write_file(const std::string& path, bool replace,
                                              const WriteAll& write);

}  // namespace esker::detail
