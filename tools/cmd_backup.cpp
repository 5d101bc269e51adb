#include <fmt/format.h>

#include <esker/session.hpp>
#include <esker/snapshot.hpp>
#include <filesystem>
#include <optional>
#include <set>

#include "args.hpp"
#include "describe.hpp"
#include "session_operand.hpp"
#include "snapshot_operand.hpp"
#include "snapshot_output.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

namespace fs = std::filesystem;

/// Namespaces of tenants, of which a snapshot holds digests only.
bool is_hidden(const std::string& name_space) {
  return !name_space.empty() && !name_space.starts_with("lora=") &&
         !name_space.starts_with("model=");
}

/// Who restores the backup has to know these names, and the file does not tell them.
void warn_of_hidden(const StorePlace& place, const std::vector<SessionInfo>& sessions,
                    Output& out) {
  std::set<std::string> hidden;
  for (const SessionInfo& session : sessions) {
    if (!session.expired && is_hidden(session.name_space)) {
      hidden.insert(namespace_text(session.name_space));
    }
  }
  if (hidden.empty()) return;
  constexpr std::size_t most = 8;
  std::string names;
  for (const std::string& name : hidden) names += names.empty() ? name : ", " + name;
  if (hidden.size() > most) names = format_items(hidden.size(), "name");
  out.note(place.label, fmt::format("the backup does not tell the names of tenants: keep them, "
                                    "`esker restore` needs --namespace for each: {}",
                                    names));
}

/// The sessions that can be brought back. What cannot is named.
Result<std::vector<std::string>> living_sessions(const StorePlace& place, const Store& store,
                                                 bool& damaged, Output& out) {
  const auto sessions = Session::list(store);
  if (!sessions) return tl::make_unexpected(sessions.error());
  std::vector<std::string> names;
  for (const SessionInfo& session : *sessions) {
    if (!session.damage.empty()) {
      damaged = true;
      out.note(place.label, fmt::format("session {} is damaged and left out: {}",
                                        cli::quoted(session.name), session.damage));
    } else if (!session.expired) {
      names.push_back(session.name);
    }
  }
  warn_of_hidden(place, *sessions, out);
  return names;
}

/// What became of one store: written, or nothing to write, or an error.
struct Outcome {
  std::optional<WrittenSnapshot> written;
  std::optional<Error> error;
  bool damaged = false;  ///< a session could not be read

  [[nodiscard]] Exit exit() const {
    if (error) return exit_for(error->code);
    return damaged || (written && exit_of(written->report) != Exit::ok) ? Exit::no : Exit::ok;
  }
};

Outcome back_up(const StorePlace& place, const SnapshotTarget& target, const CodecArgs& codec,
                Output& out) {
  Outcome outcome;
  const auto store = open_to_look(place);
  if (!store) return {{}, store.error(), false};
  const auto names = living_sessions(place, *store, outcome.damaged, out);
  if (!names) return {{}, names.error(), false};
  if (names->empty()) return outcome;
  warn_of_cold(place.label, *store, out);
  ExportOptions options;
  options.sessions = *names;
  options.compression = codec.compression;
  options.level = codec.level;
  options.threads = thread_count(codec.threads);
  auto written = write_snapshot(
      target,
      [&](int fd, const std::string& label, const Progress& progress) {
        options.progress = progress;
        return export_snapshot(*store, fd, label, options);
      },
      out);
  if (!written) return {{}, written.error(), outcome.damaged};
  outcome.written = *written;
  return outcome;
}

SnapshotTarget target_of(const BackupArgs& args, const StorePlace& place, std::string output) {
  return {place.label, std::move(output), args.force, false, "backed up", "backing up"};
}

/// "chat.esnap" for the store chat, and for ./deep/chat.esker too.
std::string default_output(const StorePlace& place) {
  const fs::path path = fs::path(place.path).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).stem().string() + ".esnap";
}

int back_up_one(const BackupArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  const SnapshotTarget target =
      target_of(args, place, args.output.empty() ? default_output(place) : args.output);
  if (target.output == "-" && out.is_json()) {
    return out.fail(place.label, "--json and -o - both want standard output: write to a file");
  }
  const Outcome outcome = back_up(place, target, args.codec, out);
  if (outcome.error) return fail_to_write(target, *outcome.error, out);
  if (!outcome.written) {
    out.note(place.label, "no sessions: nothing to back up (`esker export` takes all paths)");
    return code(Exit::no);
  }
  show_written(target, *outcome.written, out);
  Object fields{{"store", place.label}};
  for (auto& field : written_value(target, *outcome.written)) fields.push_back(std::move(field));
  if (target.output != "-") out.json(std::move(fields));
  return code(outcome.exit());
}

/// Goes on behind a store that fails, and answers with the first failure.
int back_up_all(const BackupArgs& args, Output& out) {
  const std::vector<StorePlace> places = stores_in_home();
  if (places.empty()) return out.fail(home_directory(), "no stores here: nothing to back up");
  std::error_code ignored;  // what fails here fails again, with its reason, at the first file
  fs::create_directories(args.directory, ignored);
  List stores;
  Exit worst = Exit::ok;
  for (const StorePlace& place : places) {
    const SnapshotTarget target =
        target_of(args, place, (fs::path(args.directory) / (place.label + ".esnap")).string());
    const Outcome outcome = back_up(place, target, args.codec, out);
    Object fields{{"store", place.label}};
    if (outcome.error) {
      out.fail(place.label, *outcome.error);
      fields.emplace_back("error", outcome.error->message);
    } else if (!outcome.written) {
      out.line(fmt::format("{}: no sessions", place.label));
    } else {
      out.line(fmt::format("{}: {}", place.label, target.output));
      show_written(target, *outcome.written, out);
      for (auto& field : written_value(target, *outcome.written)) {
        fields.push_back(std::move(field));
      }
    }
    stores.emplace_back(std::move(fields));
    if (worst == Exit::ok || worst == Exit::no) {
      if (outcome.exit() != Exit::ok) worst = outcome.exit();
    }
  }
  out.json({{"directory", args.directory}, {"stores", std::move(stores)}});
  return code(worst);
}

}  // namespace

int run(const BackupArgs& args, Output& out) {
  return args.directory.empty() ? back_up_one(args, out) : back_up_all(args, out);
}

}  // namespace esker::cli
