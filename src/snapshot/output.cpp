// Invariants
// 1. A file has its name only when it is whole.
// 2. Rows that are not exact are marked so in the model id.
#include "snapshot/output.hpp"

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"

namespace esker::detail {

namespace {

constexpr int best_zstd_level = 19;
constexpr std::uint32_t most_threads = 256;

LossyError error_of(const ErrorSums& sums) noexcept {
  LossyError error;
  error.max_absolute = sums.max_absolute;
  if (sums.elements == 0) return error;
  error.rms = std::sqrt(sums.squared_error / static_cast<double>(sums.elements));
  if (sums.squared > 0) error.rms_relative = std::sqrt(sums.squared_error / sums.squared);
  return error;
}

bool can_quantise(const Geometry& geometry) {
  return RowShape::of(geometry.dtype, Plane::key, 16).exponent_bits != 0;
}

}  // namespace

Result<void> check_choice(const OutputChoice& choice, const Geometry& geometry) {
  if (name(choice.compression).empty() || choice.compression > Compression::zstd) {
    return fail(Errc::invalid, "compression: there is no number " +
                                   std::to_string(static_cast<unsigned>(choice.compression)));
  }
  if (choice.level < 0 || choice.level > best_zstd_level) {
    return fail(Errc::invalid, "level is " + std::to_string(choice.level) + ", allowed is 1…" +
                                   std::to_string(best_zstd_level) + ", or 0 for the usual one");
  }
  if (choice.lossy > Lossy::q4) {
    return fail(Errc::invalid,
                "lossy: there is no number " + std::to_string(static_cast<unsigned>(choice.lossy)));
  }
  if (choice.lossy == Lossy::none || can_quantise(geometry)) return {};
  return fail(Errc::invalid, "lossy is " + std::string(name(choice.lossy)) +
                                 ", but rows of dtype \"" + geometry.dtype +
                                 "\" are no floats that could be quantised; write an exact "
                                 "snapshot");
}

std::uint32_t sensible_threads(std::uint32_t wanted) noexcept {
  return std::clamp(wanted, 1U, most_threads);
}

WriterOptions writer_options(const OutputChoice& choice) noexcept {
  return {{choice.compression, choice.level, choice.lossy}, sensible_threads(choice.threads)};
}

Lossy lossy_of(const ModelId& model) noexcept {
  const std::string_view text = model.get("lossy");
  for (const Lossy known : {Lossy::q8, Lossy::q4}) {
    if (text == name(known)) return known;
  }
  return Lossy::none;
}

Result<SnapshotHead> new_head(const Geometry& geometry, const ModelId& model, Lossy lossy) {
  SnapshotHead head;
  if (!fill_random(head.id) || !fill_random(head.salt)) {
    return fail(Errc::io, "the kernel gives no random bytes");
  }
  head.created_unix_ns = unix_ns();
  head.geometry = geometry;
  head.model = model;
  head.lossy = lossy == Lossy::none ? lossy_of(model) : lossy;
  if (lossy == Lossy::none) return head;
  const std::string_view before = model.get("lossy");
  if (!before.empty() && before != name(lossy)) {
    return fail(Errc::invalid, "lossy is " + std::string(name(lossy)) +
                                   ", but the rows are lossy=" + std::string(before) +
                                   " already; leave it out to write them as they are");
  }
  if (auto ok = head.model.set("lossy", name(lossy)); !ok) return failure_of(ok);
  return head;
}

void add_totals(const WriterTotals& totals, ExportReport& report) {
  report.blocks = totals.nodes;
  report.tokens = totals.rows;
  report.raw_bytes = totals.raw_bytes;
  report.file_bytes = totals.file_bytes;
  for (std::size_t i = 0; i < report.lossy_error.size(); ++i) {
    report.lossy_error[i] = error_of(totals.errors[i]);
  }
}

Result<ExportReport> write_file(const std::string& path, bool replace, const WriteAll& write) {
  auto sink = FileSink::create(path, replace);
  if (!sink) return failure_of(sink);
  auto report = write(**sink);
  if (!report) return report;
  if (auto done = (*sink)->commit(); !done) return failure_of(done);
  return report;
}

}  // namespace esker::detail
