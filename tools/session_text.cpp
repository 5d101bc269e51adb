#include "session_text.hpp"

#include <fmt/format.h>

#include "describe.hpp"
#include "path_name.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

constexpr std::size_t shown_note_bytes = 60;

/// At most so many bytes, never half a letter.
std::string shortened(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most) + "...";
}

Cell note(const SessionInfo& session) {
  if (!session.damage.empty()) return {"damaged: " + session.damage, Tint::bad};
  std::string text;
  for (const auto& [key, value] : session.metadata) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  }
  text = shortened(std::move(text), shown_note_bytes);
  if (session.expired) return {text.empty() ? "expired" : "expired; " + text, Tint::bad};
  return {std::move(text)};
}

List attachment_values(const SessionInfo& session) {
  List list;
  for (const AttachmentInfo& attachment : session.attachments) {
    list.emplace_back(
        Object{{"label", attachment.label},
               {"position", attachment.position},
               {"bytes", attachment.bytes},
               {"available", attachment.available},
               {"damage", attachment.damage.empty() ? Value() : Value(attachment.damage)}});
  }
  return list;
}

}  // namespace

std::uint64_t reusable_bytes(const SessionInfo& session, const Geometry& geometry) {
  return session.reusable_tokens * geometry.token_bytes();
}

std::string reusable_line(const SessionInfo& session) {
  return fmt::format("{} of {} tokens are reusable ({})", format_count(session.reusable_tokens),
                     format_count(session.tokens),
                     format_share(session.reusable_tokens, session.tokens));
}

Table session_table(std::span<const SessionInfo> sessions, const Geometry& geometry,
                    const Output& out) {
  Table table{{{"SESSION"},
               {"REUSABLE", true},
               {"TOKENS", true},
               {"KEPT", true},
               {"SIZE", true},
               {"LAST USED"},
               {"NOTE"}},
              {}};
  for (const SessionInfo& session : sessions) {
    if (!session.damage.empty()) {
      table.rows.push_back({session.name, "?", "?", "", "?", "?", note(session)});
      continue;
    }
    const bool whole = session.reusable_tokens == session.tokens;
    table.rows.push_back({session.name,
                          {format_count(session.reusable_tokens), whole ? Tint::good : Tint::none},
                          format_count(session.tokens),
                          session.kept ? format_count(session.kept_tokens) : "",
                          out.size(reusable_bytes(session, geometry)),
                          format_age(session.used_unix_ns),
                          note(session)});
  }
  drop_empty_columns(table);
  return table;
}

Object session_value(const SessionInfo& session, const Geometry& geometry) {
  const bool good = session.damage.empty();
  const auto known = [good](auto value) { return good ? Value(std::move(value)) : Value(); };
  Object metadata;
  for (const auto& [key, value] : session.metadata) metadata.emplace_back(key, value);
  return {{"name", session.name},
          {"damage", good ? Value() : Value(session.damage)},
          {"tokens", known(session.tokens)},
          {"reusable_tokens", known(session.reusable_tokens)},
          {"reusable_bytes", known(reusable_bytes(session, geometry))},
          {"kept", known(session.kept)},
          {"kept_tokens", known(session.kept_tokens)},
          {"keep_max_bytes", known(session.keep_max_bytes)},
          {"path", session.reusable_tokens == 0 ? Value() : Value(full_path_name(session.path))},
          {"namespace_hex", known(format_hex(session.name_space))},
          {"created", time_value(session.created_unix_ns)},
          {"last_used", time_value(session.used_unix_ns)},
          {"revision", known(session.revision)},
          {"priority", known(std::int64_t{session.priority})},
          {"time_to_live_s", known(session.time_to_live_s)},
          {"expired", known(session.expired)},
          {"file_bytes", session.file_bytes},
          {"metadata", std::move(metadata)},
          {"attachments", attachment_values(session)}};
}

}  // namespace esker::cli
