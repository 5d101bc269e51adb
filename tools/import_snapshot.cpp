#include "import_snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <esker/snapshot.hpp>
#include <filesystem>

#include "progress.hpp"
#include "snapshot_operand.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// What belongs to files of one sequence.
std::string misuse(const ImportArgs& args) {
  const char* given = "";
  if (!args.model.empty()) given = "--model";
  if (args.assume_model) given = "--assume-model";
  if (!args.session.name.empty()) given = "--session";
  if (*given == '\0') return {};
  return fmt::format(
      "{} is for files of an engine; a snapshot tells its model and its sessions (--assume-same "
      "KEY for a model that differs)",
      given);
}

/// What the library would choose for a new store: see Options::capacity_bytes.
std::uint64_t usual_capacity_bytes(const std::string& path) {
  constexpr std::uint64_t most = std::uint64_t{64} << 30;
  std::error_code error;
  const auto parent = std::filesystem::absolute(path, error).parent_path();
  const auto space = std::filesystem::space(parent, error);
  return error ? most : std::min<std::uint64_t>(space.available / 4, most);
}

/// Room for all of the file, and a quarter more; 0: as much as usual, which is enough or all that
/// a stream lets us know.
Result<std::uint64_t> capacity_for(const Snapshot& snapshot, const std::string& path) {
  if (!snapshot.seekable()) return 0;
  const auto contents = snapshot.contents();
  if (!contents) return tl::make_unexpected(contents.error());
  constexpr std::uint64_t least = std::uint64_t{16} << 20;
  std::uint64_t bytes = 0;
  const std::uint64_t block = snapshot.geometry().block_bytes();
  if (__builtin_mul_overflow(contents->blocks, block, &bytes) || bytes > UINT64_MAX / 2) {
    return tl::make_unexpected(Error{Errc::corrupt, 0,
                                     fmt::format("{}: {} blocks of {} bytes cannot be",
                                                 snapshot.info().path, contents->blocks, block)});
  }
  bytes += bytes / 4 + least;
  return bytes <= usual_capacity_bytes(path) ? 0 : bytes;
}

Result<Store> create_for(const ImportArgs& args, const StorePlace& place, const Snapshot& snapshot,
                         Output& out) {
  const SnapshotImportArgs& wanted = args.snapshot;
  if (wanted.capacity_bytes == 0U) {
    return tl::make_unexpected(
        Error{Errc::invalid, 0,
              "--capacity is 0: give a size, or leave it out for as much as the file needs"});
  }
  if (is_name(args.store)) make_home();  // its file system settles the usual capacity
  Options options;
  if (wanted.capacity_bytes) {
    options.capacity_bytes = *wanted.capacity_bytes;
  } else {
    const auto bytes = capacity_for(snapshot, place.path);
    if (!bytes) return tl::make_unexpected(bytes.error());
    options.capacity_bytes = *bytes;
  }
  options.cold_bytes = wanted.cold_bytes;
  options.segment_bytes = wanted.segment_bytes;
  options.sharing = wanted.group ? Sharing::group : Sharing::owner;
  auto store = Store::open_or_create(place.path, snapshot.geometry(), snapshot.model(), options);
  if (!store) return store;
  const auto info = store->info();
  if (info) {
    out.line(fmt::format("created {} ({})", place.label, out.size(info->capacity_bytes)));
  }
  return store;
}

Result<Store> open_or_create(const ImportArgs& args, const StorePlace& place,
                             const Snapshot& snapshot, Output& out) {
  auto store = open_to_change(place);
  const bool missing = !store && store.error().code == Errc::missing;
  if (missing && args.snapshot.create) return create_for(args, place, snapshot, out);
  if (missing) store.error().message += "; --create makes it from the snapshot";
  return store;
}

void show_left_out(const StorePlace& place, const ImportReport& report, Output& out) {
  if (report.refused_blocks != 0) {
    out.note(place.label,
             fmt::format("full: {} had no room", format_items(report.refused_blocks, "block")));
  }
  if (report.unreachable_tokens + report.unreachable_sessions != 0) {
    out.note(place.label,
             fmt::format("{} and {} of {} were left out: the file does not tell whose they are; "
                         "give each name by --namespace",
                         format_items(report.unreachable_tokens, "token"),
                         format_items(report.unreachable_sessions, "session"),
                         format_items(report.unnamed_namespaces, "namespace")));
  }
  for (const std::string& name : report.skipped_sessions) {
    out.note(place.label, fmt::format("session \"{}\" is there with other tokens: left as it is "
                                      "(--replace-sessions takes the file's)",
                                      name));
  }
}

void show(const StorePlace& place, const std::string& file, const ImportReport& report,
          double seconds, Output& out) {
  out.line(fmt::format("imported {}: {} stored, {} present, {} in {:.1f} s", file,
                       format_items(report.stored_blocks, "block"),
                       format_count(report.present_blocks), out.size(report.raw_bytes), seconds));
  out.fact("tokens",
           fmt::format("{} reachable, {} unreachable", format_count(report.reachable_tokens),
                       format_count(report.unreachable_tokens)));
  if (report.sessions + report.present_sessions + report.skipped_sessions.size() != 0) {
    out.fact("sessions",
             fmt::format("{} written, {} present, {} skipped", format_count(report.sessions),
                         format_count(report.present_sessions),
                         format_count(report.skipped_sessions.size())));
  }
  show_left_out(place, report, out);
}

Object values(const StorePlace& place, const std::string& file, const ImportReport& report) {
  return {
      {"store", place.label},
      {"file", file},
      {"blocks", report.blocks},
      {"stored_blocks", report.stored_blocks},
      {"present_blocks", report.present_blocks},
      {"refused_blocks", report.refused_blocks},
      {"raw_bytes", report.raw_bytes},
      {"reachable_tokens", report.reachable_tokens},
      {"unreachable_tokens", report.unreachable_tokens},
      {"unnamed_namespaces", report.unnamed_namespaces},
      {"unreachable_sessions", report.unreachable_sessions},
      {"sessions", report.sessions},
      {"present_sessions", report.present_sessions},
      {"skipped_sessions", List(report.skipped_sessions.begin(), report.skipped_sessions.end())}};
}

/// "no" where the file was not taken over as a whole for want of room or by what was there. What
/// has no name is left out on purpose, unless that was all.
Exit exit_of(const ImportReport& report) {
  const bool partial = report.refused_blocks != 0 || !report.skipped_sessions.empty();
  const bool nothing = report.reachable_tokens == 0 && report.unreachable_tokens != 0;
  return partial || nothing ? Exit::no : Exit::ok;
}

}  // namespace

int import_from_snapshot(const ImportArgs& args, llama::UniqueFd input, Output& out) {
  const StorePlace place = place_of(args.store);
  if (const std::string text = misuse(args); !text.empty()) return out.fail(place.label, text);
  auto open = adopt_snapshot(std::move(input), args.file);
  if (!open) return out.fail(place.label, open.error());
  auto store = open_or_create(args, place, open->snapshot, out);
  if (!store) return out.fail(place.label, store.error());

  ProgressLine progress(out, "importing");
  ImportOptions options;
  options.namespaces = args.namespaces;
  options.assume_same = args.snapshot.assume_same;
  options.sessions = args.snapshot.sessions;
  options.replace_sessions = args.snapshot.replace_sessions;
  options.threads = thread_count(args.snapshot.threads);
  options.progress = progress.callback();
  const auto report = import_snapshot(*store, open->snapshot, options);
  progress.done();
  if (!report) return out.fail(place.label, report.error());
  const std::string file = input_name(args.file);
  show(place, file, *report, progress.seconds(), out);
  Object fields = values(place, file, *report);
  fields.emplace_back("seconds", progress.seconds());
  out.json(std::move(fields));
  return code(exit_of(*report));
}

}  // namespace esker::cli
