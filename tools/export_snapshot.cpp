#include "export_snapshot.hpp"

#include <fmt/format.h>

#include <esker/snapshot.hpp>

#include "path_name.hpp"
#include "session_operand.hpp"
#include "snapshot_operand.hpp"
#include "snapshot_output.hpp"
#include "store_operand.hpp"
#include "token_ids.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

Result<void> add_paths(const ExportArgs& args, const Store& store, ExportOptions& options) {
  if (args.paths.empty()) return {};
  const auto stored = store.paths();
  if (!stored) return tl::make_unexpected(stored.error());
  for (const std::string& text : args.paths) {
    const auto path = find_path(text, *stored);
    if (!path) return tl::make_unexpected(path.error());
    options.paths.push_back(*path);
  }
  return {};
}

Result<void> add_sessions(const ExportArgs& args, const Store& store, ExportOptions& options) {
  if (args.sessions.empty()) return {};
  const auto sessions = find_sessions(store, args.sessions);
  if (!sessions) return tl::make_unexpected(sessions.error());
  for (const SessionInfo& session : *sessions) options.sessions.push_back(session.name);
  return {};
}

Result<void> add_prompt(const ExportArgs& args, const Store& store, ExportOptions& options,
                        Output& out) {
  if (args.prompt.ids_file.empty()) return {};
  auto ids = read_token_ids(args.prompt.ids_file);
  if (!ids) return tl::make_unexpected(ids.error());
  if (args.prompt.first && *args.prompt.first < ids->size()) ids->resize(*args.prompt.first);
  const std::uint32_t stored = store.match(*ids, args.prompt.name_space);
  if (stored < ids->size()) {
    out.note(args.store, fmt::format("{} tokens were asked for, the first {} are stored",
                                     format_count(ids->size()), format_count(stored)));
  }
  options.prompts.push_back({std::move(*ids), args.prompt.name_space});
  return {};
}

Result<ExportOptions> options_for(const ExportArgs& args, const Store& store, Output& out) {
  ExportOptions options;
  options.compression = args.codec.compression;
  options.level = args.codec.level;
  options.lossy = args.codec.lossy;
  options.threads = thread_count(args.codec.threads);
  auto added = add_paths(args, store, options);
  if (added) added = add_sessions(args, store, options);
  if (added) added = add_prompt(args, store, options, out);
  if (!added) return tl::make_unexpected(added.error());
  return options;
}

}  // namespace

int export_as_snapshot(const ExportArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  const auto store = open_to_look(place);
  if (!store) return out.fail(place.label, store.error());
  auto options = options_for(args, *store, out);
  if (!options) return out.fail(place.label, options.error());
  warn_of_cold(place.label, *store, out);
  SnapshotTarget target{place.label, args.output, args.force, false, "exported", "exporting"};
  // A store that holds nothing still has a geometry and a model to move.
  target.may_be_empty =
      options->paths.empty() && options->sessions.empty() && options->prompts.empty();
  const auto write = [&](int fd, const std::string& label, const Progress& progress) {
    options->progress = progress;
    return export_snapshot(*store, fd, label, *options);
  };
  return write_and_tell(target, write, {{"store", place.label}}, out);
}

}  // namespace esker::cli
