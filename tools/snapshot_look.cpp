#include "snapshot_look.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "describe.hpp"
#include "progress.hpp"
#include "snapshot_operand.hpp"
#include "snapshot_text.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

// Verify.

int show_check(const std::string& name, const SnapshotCheck& check, double seconds, Output& out) {
  List damage;
  for (const Damage& found : check.damage) {
    out.line(fmt::format("{}: {}", found.file, found.what), Tint::bad);
    damage.emplace_back(Object{{"file", found.file}, {"frame", found.block}, {"what", found.what}});
  }
  const bool sound = check.damage.empty();
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(check.raw_bytes) / seconds);
  out.line(fmt::format("verified {}, {}, {} in {:.1f} s ({}/s): {} damaged",
                       format_items(check.blocks, "block"), format_items(check.sessions, "session"),
                       out.size(check.raw_bytes), seconds, out.size(rate),
                       format_count(check.damage.size())),
           sound ? Tint::good : Tint::bad);
  out.json({{"snapshot", name},
            {"ok", sound},
            {"frames", check.frames},
            {"blocks", check.blocks},
            {"sessions", check.sessions},
            {"raw_bytes", check.raw_bytes},
            {"seconds", seconds},
            {"damage", std::move(damage)}});
  return code(sound ? Exit::ok : Exit::no);
}

/// The answer for a file whose head or index already failed: damage, not an error.
SnapshotCheck unopenable(const std::string& name, const Error& error) {
  SnapshotCheck check;
  check.damage.push_back({name, 0, error.message});
  return check;
}

// Info.

void show_head(const SnapshotInfo& info, Output& out) {
  out.fact("snapshot", info.path);
  out.fact("format",
           fmt::format("{} (readable from {} on)", info.write_version, info.read_version));
  out.fact("id", format_uuid(info.id));
  out.fact("created", format_time(info.created_unix_ns));
  show_shape(out, info.model, info.geometry);
  out.fact("rows",
           info.lossy == Lossy::none ? "exact" : fmt::format("lossy ({})", name(info.lossy)));
}

std::string codec_line(const SnapshotContents& contents) {
  // Filters pack rows by themselves; what LZ4 would not shrink further stands without it.
  constexpr std::array<const char*, 3> codecs{"raw or packed", "lz4", "zstd"};
  std::string line;
  for (std::size_t i = 0; i < codecs.size(); ++i) {
    if (contents.chunks.at(i) == 0) continue;
    line += fmt::format("{}{}: {}", line.empty() ? "" : ", ", codecs.at(i),
                        format_items(contents.chunks.at(i), "chunk"));
  }
  return line.empty() ? "none" : line;
}

void show_sessions(const SnapshotContents& contents, Output& out) {
  if (contents.sessions.empty()) return;
  Table table{{{"SESSION"},
               {"TOKENS", true},
               {"STORED", true},
               {"NAMESPACE"},
               {"STATES", true},
               {"LAST USED"}},
              {}};
  for (const SnapshotSession& session : contents.sessions) {
    const bool known = session.name_space < contents.namespaces.size();
    const std::string space = known && !(contents.namespaces[session.name_space].named &&
                                         contents.namespaces[session.name_space].text.empty())
                                  ? namespace_text(contents.namespaces[session.name_space])
                                  : "";
    table.rows.push_back({session.name, format_count(session.tokens),
                          format_count(session.stored_tokens), space,
                          session.attachments == 0 ? "" : format_count(session.attachments),
                          format_age(session.used_unix_ns)});
  }
  drop_empty_columns(table);
  out.line("");
  out.table(table);
}

void show_contents(const SnapshotInfo& info, const SnapshotContents& contents, Output& out) {
  out.fact("holds", fmt::format("{}, {}, {}, {}", format_items(contents.paths.size(), "path"),
                                format_items(contents.tokens, "token"),
                                format_items(contents.blocks, "block"),
                                format_items(contents.sessions.size(), "session")));
  out.fact("size", fmt::format("{} of rows in {}: {}", out.size(contents.raw_bytes),
                               out.size(info.file_bytes),
                               format_ratio(contents.raw_bytes, info.file_bytes)));
  out.fact("codecs", codec_line(contents));
  for (const SnapshotNamespace& space : contents.namespaces) {
    out.fact("namespace",
             fmt::format("{}: {}", namespace_text(space), format_items(space.tokens, "token")));
  }
  show_sessions(contents, out);
}

Object head_values(const SnapshotInfo& info) {
  return {{"snapshot", info.path},
          {"id", format_uuid(info.id)},
          {"format_write_version", info.write_version},
          {"format_read_version", info.read_version},
          {"created", time_value(info.created_unix_ns)},
          {"model", model_value(info.model)},
          {"geometry", geometry_value(info.geometry)},
          {"lossy", std::string(name(info.lossy))},
          {"file_bytes", info.file_bytes == 0 ? Value() : Value(info.file_bytes)}};
}

Value namespace_value(const SnapshotNamespace& space) {
  return Object{
      {"named", space.named},
      {space.named ? "namespace_hex" : "digest", space.named ? format_hex(space.text) : space.text},
      {"tokens", space.tokens}};
}

Value session_value(const SnapshotSession& session) {
  return Object{{"name", session.name},
                {"namespace", session.name_space},
                {"tokens", session.tokens},
                {"stored_tokens", session.stored_tokens},
                {"attachments", session.attachments},
                {"last_used", time_value(session.used_unix_ns)}};
}

void add_contents(const SnapshotContents& contents, Object& fields) {
  List spaces;
  for (const SnapshotNamespace& space : contents.namespaces)
    spaces.push_back(namespace_value(space));
  List sessions;
  for (const SnapshotSession& session : contents.sessions) {
    sessions.push_back(session_value(session));
  }
  List paths;
  for (const SnapshotPath& path : contents.paths) {
    paths.emplace_back(Object{{"tokens", path.tokens},
                              {"blocks", path.blocks},
                              {"bytes", path.bytes},
                              {"own_bytes", path.own_bytes},
                              {"namespace", path.name_space},
                              {"key", path.key}});
  }
  fields.emplace_back("blocks", contents.blocks);
  fields.emplace_back("tokens", contents.tokens);
  fields.emplace_back("raw_bytes", contents.raw_bytes);
  fields.emplace_back("chunk_bytes", contents.chunk_bytes);
  fields.emplace_back("chunks", Object{{"raw", contents.chunks[0]},
                                       {"lz4", contents.chunks[1]},
                                       {"zstd", contents.chunks[2]}});
  fields.emplace_back("namespaces", std::move(spaces));
  fields.emplace_back("paths", std::move(paths));
  fields.emplace_back("sessions", std::move(sessions));
}

}  // namespace

int verify_snapshot(const std::string& operand, Output& out) {
  const std::string name = input_name(operand);
  ProgressLine progress(out, "verified");
  auto open = open_snapshot(operand);
  if (!open && open.error().code == Errc::corrupt) {
    return show_check(name, unopenable(name, open.error()), progress.seconds(), out);
  }
  if (!open) return out.fail(name, open.error());
  const auto check = open->snapshot.verify(progress.callback());
  progress.done();
  if (!check) return out.fail(name, check.error());
  return show_check(name, *check, progress.seconds(), out);
}

int info_of_snapshot(const std::string& operand, Output& out) {
  const std::string name = input_name(operand);
  const auto open = open_snapshot(operand);
  if (!open) return out.fail(name, open.error());
  const Snapshot& snapshot = open->snapshot;
  Object fields = head_values(snapshot.info());
  if (!snapshot.seekable()) {
    show_head(snapshot.info(), out);
    out.note(name, "a stream tells no more: what is in it stands at its end");
    out.json(std::move(fields));
    return code(Exit::ok);
  }
  const auto contents = snapshot.contents();
  if (!contents) return out.fail(name, contents.error());
  show_head(snapshot.info(), out);
  show_contents(snapshot.info(), *contents, out);
  add_contents(*contents, fields);
  out.json(std::move(fields));
  return code(Exit::ok);
}

}  // namespace esker::cli
