#include <fmt/format.h>

#include "args.hpp"
#include "describe.hpp"
#include "path_name.hpp"
#include "session_operand.hpp"
#include "session_text.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

std::string moment(std::uint64_t unix_ns) {
  return fmt::format("{} ({})", format_time(unix_ns), format_age(unix_ns));
}

std::string kept_line(const SessionInfo& session, const Output& out) {
  if (!session.kept) return "no: its blocks go when room is needed";
  const std::string most =
      session.keep_max_bytes == 0 ? "half of the capacity" : out.size(session.keep_max_bytes);
  return fmt::format("{} tokens; all kept sessions hold at most {}",
                     format_count(session.kept_tokens), most);
}

std::string life_line(const SessionInfo& session) {
  if (session.time_to_live_s == 0) return "for ever";
  const std::string text =
      fmt::format("{} after its last use", format_duration(session.time_to_live_s));
  return session.expired ? text + ": over, it can only be removed" : text;
}

void show_attachments(const SessionInfo& session, Output& out) {
  if (session.attachments.empty()) return;
  Table table{{{"ATTACHMENT"}, {"POSITION", true}, {"SIZE", true}, {"AVAILABLE"}}, {}};
  for (const AttachmentInfo& attachment : session.attachments) {
    Cell state = attachment.available ? Cell("yes", Tint::good) : Cell("no");
    if (!attachment.damage.empty()) state = {"damaged: " + attachment.damage, Tint::bad};
    table.rows.push_back({attachment.label, format_count(attachment.position),
                          out.size(attachment.bytes), std::move(state)});
  }
  out.line("");
  out.table(table);
}

void show_good(const SessionInfo& session, const Geometry& geometry, Output& out) {
  out.fact("tokens", reusable_line(session));
  out.fact("size",
           fmt::format("{} of KV rows, {} of files", out.size(reusable_bytes(session, geometry)),
                       out.size(session.file_bytes)));
  out.fact("kept", kept_line(session, out));
  if (session.reusable_tokens != 0) out.fact("path", path_name(session.path));
  if (!session.name_space.empty()) out.fact("namespace", namespace_text(session.name_space));
  out.fact("created", moment(session.created_unix_ns));
  out.fact("last used", moment(session.used_unix_ns));
  out.fact("saved", format_items(session.revision, "time"));
  out.fact("priority", std::to_string(session.priority));
  out.fact("lives", life_line(session));
  for (const auto& [key, value] : session.metadata) {
    out.fact("note", fmt::format("{}={}", key, value));
  }
  show_attachments(session, out);
}

}  // namespace

int run(const SessionShowArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  const auto look = look_at(place);
  if (!look) return out.fail(place.label, look.error());
  const auto session = find_session(look->store, args.name);
  if (!session) return out.fail(place.label, session.error());

  const Geometry& geometry = look->store.geometry();
  const bool good = session->damage.empty();
  out.fact("session", session->name);
  if (good) {
    show_good(*session, geometry, out);
  } else {
    out.line("damaged: " + session->damage, Tint::bad);
    out.fact("files", out.size(session->file_bytes));
  }
  Object fields{{"store", place.label}};
  for (auto& field : session_value(*session, geometry)) fields.push_back(std::move(field));
  out.json(std::move(fields));
  return code(good ? Exit::ok : Exit::no);
}

}  // namespace esker::cli
