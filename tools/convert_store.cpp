#include "convert_store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <esker/snapshot.hpp>
#include <filesystem>

#include "import_session.hpp"
#include "llama/rotation.hpp"
#include "llama/seq_reader.hpp"
#include "llama/store_fit.hpp"
#include "model_operand.hpp"
#include "path_name.hpp"
#include "progress.hpp"
#include "store_operand.hpp"
#include "temporary_store.hpp"
#include "token_ids.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

constexpr std::uint32_t block_tokens = 32;

/// The identity of a store for this file: what the user says, and how the file rotates its rows.
Result<ModelId> model_for(const ConvertArgs& args, const llama::SeqFile& file, Output& out) {
  ProgressLine progress(out, "reading the model");
  auto model = model_id(args.model, progress.callback());
  progress.done();
  if (!model) return model;
  if (model->unnamed() && !args.assume_model) {
    out.note(args.input,
             "unnamed: nothing tells which model its rows belong to; --model or --model-file does");
  }
  if (const auto added = llama::add_rotation(file.layout(), *model); !added) {
    return tl::make_unexpected(added.error());
  }
  return model;
}

/// Stores the file's rows, as a session where one is named; returns how many tokens are stored.
Result<std::uint32_t> store_rows(const ConvertArgs& args, const llama::SeqFile& file, Store& store,
                                 const Progress& progress) {
  if (!args.session.empty()) {
    SessionChange change;
    change.name = args.session;
    const auto done = import_session(file, store, args.prompt.name_space, change, progress);
    if (!done) return tl::make_unexpected(done.error());
    return done->info.reusable_tokens;
  }
  auto reservation = store.reserve(file.tokens(), args.prompt.name_space);
  if (!reservation) return tl::make_unexpected(reservation.error());
  const auto written = write_missing(file, store.geometry(), *reservation, progress);
  if (!written) return tl::make_unexpected(written.error());
  const auto prefix = std::move(*reservation).publish();
  if (!prefix) return tl::make_unexpected(prefix.error());
  return prefix->tokens();
}

Result<ExportReport> write_snapshot(const Store& store, const ConvertArgs& args,
                                    ExportOptions options) {
  options.replace = args.force;
  if (args.output != "-") return export_snapshot(store, args.output, options);
  if (::isatty(STDOUT_FILENO) == 1) {
    return tl::make_unexpected(Error{
        Errc::invalid, 0, "standard output is a terminal: binary data needs a file or a pipe"});
  }
  return export_snapshot(store, STDOUT_FILENO, "standard output", options);
}

std::string directory_of(const std::string& output) {
  if (output == "-") return std::filesystem::temp_directory_path().string();
  return std::filesystem::path(output).parent_path().string();
}

Result<ExportReport> snapshot_of_file(const ConvertArgs& args, Output& out) {
  const auto file = llama::SeqFile::open(args.input);
  if (!file) return tl::make_unexpected(file.error());
  const auto model = model_for(args, *file, out);
  if (!model) return tl::make_unexpected(model.error());
  const Geometry geometry = file->geometry(block_tokens);
  const std::uint64_t bytes = file->tokens().size() * geometry.token_bytes();
  auto made = TemporaryStore::create(directory_of(args.output), geometry, *model, bytes);
  if (!made) return tl::make_unexpected(made.error());
  ProgressLine progress(out, "converting");
  const auto guarded = made->guarded(progress.callback());
  const auto stored = store_rows(args, *file, made->store(), guarded);
  if (!stored) return tl::make_unexpected(stored.error());
  if (*stored != file->tokens().size()) {
    return tl::make_unexpected(
        Error{Errc::full, 0, fmt::format("{}: no room for all tokens", args.input)});
  }
  ExportOptions options;
  options.progress = guarded;
  return write_snapshot(made->store(), args, std::move(options));
}

Result<ExportReport> snapshot_of_store(const ConvertArgs& args, Output& out) {
  auto store = open_to_look(place_of(args.input));
  if (!store) return tl::make_unexpected(store.error());
  ExportOptions options;
  if (!args.session.empty()) options.sessions.push_back(args.session);
  if (!args.path.empty()) {
    const auto paths = store->paths();
    if (!paths) return tl::make_unexpected(paths.error());
    const auto path = find_path(args.path, *paths);
    if (!path) return tl::make_unexpected(path.error());
    options.paths.push_back(*path);
  }
  if (!args.prompt.ids_file.empty()) {
    auto ids = read_token_ids(args.prompt.ids_file);
    if (!ids) return tl::make_unexpected(ids.error());
    if (args.prompt.first && *args.prompt.first < ids->size()) ids->resize(*args.prompt.first);
    options.prompts.push_back({std::move(*ids), args.prompt.name_space});
  }
  ProgressLine progress(out, "converting");
  options.progress = progress.callback();
  return write_snapshot(*store, args, std::move(options));
}

/// The store OUT, made for this geometry and model when it is not there.
Result<Store> target_store(const ConvertArgs& args, const Geometry& geometry,
                           const ModelId& model) {
  const StorePlace place = place_of(args.output);
  auto store = Store::open(place.path);
  if (store || store.error().code != Errc::missing) return store;
  std::error_code ignored;
  const auto home = std::filesystem::path(place.path).parent_path();
  if (is_name(args.output)) std::filesystem::create_directories(home, ignored);
  return Store::create(place.path, geometry, model);
}

Result<std::uint64_t> store_file(const ConvertArgs& args, Output& out) {
  const auto file = llama::SeqFile::open(args.input);
  if (!file) return tl::make_unexpected(file.error());
  const auto model = model_for(args, *file, out);
  if (!model) return tl::make_unexpected(model.error());
  auto store = target_store(args, file->geometry(block_tokens), *model);
  if (!store) return tl::make_unexpected(store.error());
  auto fits = llama::check_fit(*file, store->geometry(), store->model());
  if (fits && !args.assume_model) fits = llama::check_model(*file, *model, store->model());
  if (!fits) return tl::make_unexpected(fits.error());
  ProgressLine progress(out, "converting");
  const auto stored = store_rows(args, *file, *store, progress.callback());
  if (!stored) return tl::make_unexpected(stored.error());
  return *stored;
}

Result<std::uint64_t> store_snapshot(const ConvertArgs& args, Output& out) {
  auto snapshot = Snapshot::open(args.input);
  if (!snapshot) return tl::make_unexpected(snapshot.error());
  auto store = target_store(args, snapshot->geometry(), snapshot->model());
  if (!store) return tl::make_unexpected(store.error());
  ImportOptions options;
  if (!args.prompt.name_space.empty()) options.namespaces.push_back(args.prompt.name_space);
  ProgressLine progress(out, "converting");
  options.progress = progress.callback();
  const auto report = import_snapshot(*store, *snapshot, options);
  if (!report) return tl::make_unexpected(report.error());
  if (report->unreachable_tokens > 0) {
    out.note(args.input,
             fmt::format("{} tokens belong to namespaces whose names the file does not tell: give "
                         "--namespace to find them again",
                         format_count(report->unreachable_tokens)));
  }
  return report->reachable_tokens;
}

}  // namespace

int convert_to_snapshot(const ConvertArgs& args, FileKind from, Output& out) {
  const auto report =
      from == FileKind::store ? snapshot_of_store(args, out) : snapshot_of_file(args, out);
  if (!report && report.error().os_error == EPIPE) return code(Exit::pipe_closed);
  if (!report) return out.fail(args.input, report.error());
  const std::string text =
      fmt::format("converted {} to {} (esnap): {}, {}", args.input, args.output,
                  format_items(report->tokens, "token"), out.size(report->file_bytes));
  if (args.output == "-") {
    out.note(args.input, text);
  } else {
    out.line(text);
    out.json({{"input", args.input},
              {"from", name(from)},
              {"output", args.output},
              {"to", "esnap"},
              {"tokens", report->tokens},
              {"bytes", report->file_bytes}});
  }
  return code(Exit::ok);
}

int convert_to_store(const ConvertArgs& args, FileKind from, Output& out) {
  const auto tokens =
      from == FileKind::snapshot ? store_snapshot(args, out) : store_file(args, out);
  if (!tokens) return out.fail(args.input, tokens.error());
  out.line(fmt::format("converted {} to {} (store): {}", args.input, args.output,
                       format_items(*tokens, "token")));
  out.json({{"input", args.input},
            {"from", name(from)},
            {"output", args.output},
            {"to", "store"},
            {"tokens", *tokens}});
  return code(Exit::ok);
}

}  // namespace esker::cli
