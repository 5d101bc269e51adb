#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "args.hpp"
#include "llama/seq_reader.hpp"
#include "llama/store_fit.hpp"
#include "model_operand.hpp"
#include "path_name.hpp"
#include "progress.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{16} << 20;

/// What an import did, in numbers.
struct Imported {
  std::uint64_t path = 0;
  std::uint32_t tokens = 0;         ///< in the file
  std::uint32_t stored_tokens = 0;  ///< of these, in the store now
  std::uint32_t new_tokens = 0;     ///< of these, not there before
  std::uint32_t new_blocks = 0;
  std::uint64_t new_bytes = 0;
};

Result<void> check(const ImportArgs& args, const llama::SeqFile& file, const Store& store,
                   Output& out) {
  if (auto fit = llama::check_fit(file, store.geometry(), store.model()); !fit) return fit;
  if (args.assume_model) return {};
  ProgressLine progress(out, "reading the model");
  const auto given = model_id(args.model, progress.callback());
  if (!given) return tl::make_unexpected(given.error());
  return llama::check_model(file, *given, store.model());
}

/// Hands the rows of one plane over, a few megabytes at a time.
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

Result<Imported> import_rows(const llama::SeqFile& file, Store& store, Namespace name_space,
                             const Progress& progress) {
  auto reservation = store.reserve(file.tokens(), name_space);
  if (!reservation) return tl::make_unexpected(reservation.error());
  const TokenRange missing = reservation->missing();
  const Geometry& geometry = store.geometry();
  const auto layers = static_cast<std::uint32_t>(geometry.layers.size());
  Imported imported;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    for (const Plane plane : {Plane::key, Plane::value}) {
      const auto copied = copy_plane(file, layer, plane, *reservation);
      if (!copied) return tl::make_unexpected(copied.error());
      if (missing.empty()) continue;
      imported.new_bytes += std::uint64_t{missing.size()} * geometry.row_bytes(layer, plane);
      if (progress) progress(imported.new_bytes, missing.size() * geometry.token_bytes());
    }
  }
  // A server may save over a file that is being read.
  if (const auto same = file.check_unchanged(); !same) return tl::make_unexpected(same.error());
  const auto prefix = std::move(*reservation).publish();
  if (!prefix) return tl::make_unexpected(prefix.error());
  imported.path = prefix->path();
  imported.tokens = static_cast<std::uint32_t>(file.tokens().size());
  imported.stored_tokens = prefix->tokens();
  if (!missing.empty()) {
    const std::uint32_t block = geometry.block_tokens;
    imported.new_tokens = missing.size();
    imported.new_blocks = (missing.end + block - 1) / block - missing.begin / block;
  }
  return imported;
}

void show(const StorePlace& place, const llama::SeqFile& file, const Imported& done, Output& out) {
  out.line(fmt::format("imported {}: {} of {} tokens are new ({} blocks, {})", file.name(),
                       format_count(done.new_tokens), format_count(done.tokens),
                       format_count(done.new_blocks), out.size(done.new_bytes)));
  if (done.stored_tokens > 0) out.fact("path", path_name(done.path));
  if (done.stored_tokens < done.tokens) {
    out.note(place.label, fmt::format("full: only the first {} of {} tokens are stored",
                                      format_count(done.stored_tokens), format_count(done.tokens)));
  }
  out.json({{"store", place.label},
            {"file", file.name()},
            {"path", full_path_name(done.path)},
            {"tokens", done.tokens},
            {"stored_tokens", done.stored_tokens},
            {"new_tokens", done.new_tokens},
            {"new_blocks", done.new_blocks},
            {"new_bytes", done.new_bytes}});
}

}  // namespace

int run(const ImportArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  const auto file = llama::SeqFile::open(args.file);
  if (!file) return out.fail(place.label, file.error());
  auto store = open_to_change(place);
  if (!store) return out.fail(place.label, store.error());
  const auto fits = check(args, *file, *store, out);
  if (!fits) return out.fail(place.label, fits.error());

  ProgressLine progress(out, "importing");
  const auto imported = import_rows(*file, *store, args.name_space, progress.callback());
  progress.done();
  if (!imported) return out.fail(place.label, imported.error());
  show(place, *file, *imported, out);
  return code(imported->stored_tokens == 0 ? Exit::no : Exit::ok);
}

}  // namespace esker::cli
