#include <fmt/format.h>

#include <optional>

#include "args.hpp"
#include "import_rows.hpp"
#include "import_session.hpp"
#include "import_snapshot.hpp"
#include "input_kind.hpp"
#include "llama/seq_reader.hpp"
#include "llama/store_fit.hpp"
#include "model_operand.hpp"
#include "path_name.hpp"
#include "progress.hpp"
#include "session_text.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// What an import did.
struct Imported {
  std::uint64_t path = 0;
  std::uint32_t stored_tokens = 0;  ///< of those in the file, in the store now
  Written written;                  ///< what was not there before
  std::optional<ImportedSession> session;
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

Result<Imported> import_path(const llama::SeqFile& file, Store& store, Namespace name_space,
                             const Progress& progress) {
  auto reservation = store.reserve(file.tokens(), name_space);
  if (!reservation) return tl::make_unexpected(reservation.error());
  const auto written = write_missing(file, store.geometry(), *reservation, progress);
  if (!written) return tl::make_unexpected(written.error());
  const auto prefix = std::move(*reservation).publish();
  if (!prefix) return tl::make_unexpected(prefix.error());
  return Imported{prefix->path(), prefix->tokens(), *written, {}};
}

Result<Imported> import_rows(const ImportArgs& args, const llama::SeqFile& file, Store& store,
                             const Progress& progress) {
  const std::string name_space = args.namespaces.empty() ? "" : args.namespaces.front();
  if (args.session.name.empty()) return import_path(file, store, name_space, progress);
  auto done = import_session(file, store, name_space, args.session, progress);
  if (!done) return tl::make_unexpected(done.error());
  return Imported{done->info.path, done->info.reusable_tokens, done->written, std::move(*done)};
}

void show_session(const ImportedSession& session, Output& out) {
  const std::string how = session.is_new ? "new"
                                         : fmt::format("continued behind {} tokens",
                                                       format_count(session.common_tokens));
  out.fact("session",
           fmt::format("{} ({}): {}", session.info.name, how, reusable_line(session.info)));
}

void show(const StorePlace& place, const llama::SeqFile& file, const Geometry& geometry,
          const Imported& done, Output& out) {
  const auto tokens = static_cast<std::uint32_t>(file.tokens().size());
  out.line(fmt::format("imported {}: {} of {} tokens are new ({} blocks, {})", file.name(),
                       format_count(done.written.tokens), format_count(tokens),
                       format_count(done.written.blocks), out.size(done.written.bytes)));
  if (done.stored_tokens > 0) out.fact("path", path_name(done.path));
  if (done.session) show_session(*done.session, out);
  if (done.stored_tokens < tokens) {
    out.note(place.label, fmt::format("full: only the first {} of {} tokens are stored",
                                      format_count(done.stored_tokens), format_count(tokens)));
  }
  Object fields{{"store", place.label},
                {"file", file.name()},
                {"path", full_path_name(done.path)},
                {"tokens", tokens},
                {"stored_tokens", done.stored_tokens},
                {"new_tokens", done.written.tokens},
                {"new_blocks", done.written.blocks},
                {"new_bytes", done.written.bytes}};
  if (done.session) {
    fields.emplace_back("is_new_session", done.session->is_new);
    fields.emplace_back("common_tokens", done.session->common_tokens);
    fields.emplace_back("session", session_value(done.session->info, geometry));
  }
  out.json(std::move(fields));
}

/// What belongs to snapshots.
std::string misuse(const ImportArgs& args) {
  const SnapshotImportArgs& snapshot = args.snapshot;
  const char* given = "";
  if (args.namespaces.size() > 1) given = "a second --namespace";
  if (snapshot.capacity_bytes) given = "--capacity";
  if (snapshot.replace_sessions) given = "--replace-sessions";
  if (!snapshot.sessions) given = "--no-sessions";
  if (!snapshot.assume_same.empty()) given = "--assume-same";
  if (snapshot.create) given = "--create";
  if (*given == '\0') return {};
  return fmt::format("{} is for snapshots, and {} is none", given, args.file);
}

int import_sequence(const ImportArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  const auto file = llama::SeqFile::open(args.file);
  if (!file) return out.fail(place.label, file.error());
  if (const std::string text = misuse(args); !text.empty()) return out.fail(place.label, text);
  auto store = open_to_change(place);
  if (!store) return out.fail(place.label, store.error());
  const auto fits = check(args, *file, *store, out);
  if (!fits) return out.fail(place.label, fits.error());

  ProgressLine progress(out, "importing");
  const auto imported = import_rows(args, *file, *store, progress.callback());
  progress.done();
  if (!imported) return out.fail(place.label, imported.error());
  show(place, *file, store->geometry(), *imported, out);
  return code(imported->stored_tokens == 0 ? Exit::no : Exit::ok);
}

}  // namespace

int run(const ImportArgs& args, Output& out) {
  if (args.format == "llama") return import_sequence(args, out);
  auto input = open_input(args.file);
  if (!input) return out.fail(args.store, input.error());
  const bool snapshot = args.format == "esnap" || kind_of(input->get()) == InputKind::snapshot;
  return snapshot ? import_from_snapshot(args, std::move(*input), out) : import_sequence(args, out);
}

}  // namespace esker::cli
