#include "report_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <esker/version.hpp>

#include "describe.hpp"
#include "event_text.hpp"
#include "html.hpp"
#include "path_name.hpp"
#include "report_charts.hpp"
#include "session_text.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

constexpr std::size_t shown_rows = 300;

std::string card(std::string_view value, std::string_view text, bool alarm = false) {
  return fmt::format("<div class=\"card{}\"><b>{}</b><span>{}</span></div>\n",
                     alarm ? " alarm" : "", html_text(value), html_text(text));
}

std::string cards(const ReportData& data) {
  const Stats& stats = data.stats;
  const Counters& count = stats.counters;
  std::string html = "<div class=\"cards\">\n";
  html += card(format_bytes(stats.store_bytes),
               fmt::format("stored, of {} in all", format_bytes(data.info.capacity_bytes)));
  html += card(data.seated ? format_share(count.hit_tokens, count.lookup_tokens) : "?",
               data.seated ? fmt::format("of {} found", format_items(count.lookup_tokens, "token"))
                           : "found: not known without a seat");
  html += card(format_count(data.path_count),
               fmt::format("path{} in {}", data.path_count == 1 ? "" : "s",
                           format_items(stats.blocks_ready, "block")));
  html += card(format_count(data.sessions.size()),
               data.sessions.size() == 1 ? "session by name" : "sessions by name");
  html += card(data.seated ? format_count(data.processes.size()) : "?",
               data.processes.size() == 1 ? "process has it open" : "processes have it open");
  if (stats.cold_files != 0) {
    html += card(format_bytes(stats.cold_raw_bytes),
                 fmt::format("cold, compressed to {}", format_bytes(stats.cold_file_bytes)));
  }
  const std::uint64_t damage = std::max(stats.blocks_bad, count.bad_blocks);
  html += card(format_count(damage), damage == 1 ? "damaged block" : "damaged blocks", damage != 0);
  return html + "</div>\n";
}

std::string section(std::string_view title, std::string_view sub, std::string_view body) {
  return fmt::format("<section><h2>{}</h2>\n<p class=\"sub\">{}</p>\n{}</section>\n",
                     html_text(title), html_text(sub), body);
}

/// The trie, coloured by age or by bytes: a choice that needs no script.
std::string trie(const ReportData& data) {
  const std::string body =
      "<div class=\"plot\">\n"
      "<input type=\"radio\" name=\"colour\" id=\"age\" checked>"
      "<label for=\"age\">by age</label>\n"
      "<input type=\"radio\" name=\"colour\" id=\"size\"><label for=\"size\">by bytes</label>\n" +
      icicle_legend(data) + icicle_chart(data) + "</div>\n";
  return section("What is stored",
                 "As wide as the bytes it holds; below each branch those that go on from it. Point "
                 "at one to read more.",
                 body);
}

/// Opens a table; a title that begins with '#' stands over numbers.
std::string table_head(std::initializer_list<std::string_view> titles) {
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string_view title : titles) {
    const bool number = title.starts_with('#');
    html += fmt::format("<th{}>{}</th>", number ? " class=\"n\"" : "",
                        html_text(title.substr(number ? 1 : 0)));
  }
  return html + "</tr></thead>\n<tbody>\n";
}

std::string cell(std::string_view text, std::string_view kind = "") {
  if (kind.empty()) return fmt::format("<td>{}</td>", html_text(text));
  return fmt::format("<td class=\"{}\">{}</td>", kind, html_text(text));
}

std::string table_end(std::size_t rows) {
  std::string html = "</tbody></table></div>\n";
  if (rows > shown_rows) {
    html += fmt::format("<p class=\"more\">and {} more</p>\n", format_count(rows - shown_rows));
  }
  return html;
}

std::string session_row(const SessionInfo& session, const Geometry& geometry) {
  if (!session.damage.empty()) {
    return "<tr>" + cell(session.name) +
           fmt::format("<td class=\"warn\" colspan=\"6\">damaged: {}</td></tr>\n",
                       html_text(session.damage));
  }
  const double share = session.tokens == 0 ? 0
                                           : 100.0 * static_cast<double>(session.reusable_tokens) /
                                                 static_cast<double>(session.tokens);
  std::string notes;
  for (const auto& [key, value] : session.metadata) notes += fmt::format("{}={} ", key, value);
  if (session.expired) notes = "expired; " + notes;
  return "<tr>" + cell(session.name) +
         fmt::format(
             "<td class=\"n\"><span class=\"meter\"><i style=\"width:{:.0f}%\"></i></span>"
             "{}</td>",
             std::min(share, 100.0), format_count(session.reusable_tokens)) +
         cell(format_count(session.tokens), "n") +
         cell(session.kept ? format_count(session.kept_tokens) : "", "n") +
         cell(format_bytes(reusable_bytes(session, geometry)), "n") +
         cell(format_age(session.used_unix_ns)) + cell(notes) + "</tr>\n";
}

std::string sessions(const ReportData& data) {
  if (data.sessions.empty()) return "";
  std::string body =
      table_head({"Session", "#Reusable", "#Tokens", "#Kept", "#Size", "Last used", "Notes"});
  for (std::size_t i = 0; i < data.sessions.size() && i < shown_rows; ++i) {
    body += session_row(data.sessions[i], data.info.geometry);
  }
  return section("Sessions", "Chats that are kept by name, and how much of each is still stored.",
                 body + table_end(data.sessions.size()));
}

std::string paths(const ReportData& data) {
  if (data.paths.empty()) return "";
  const bool tokens = !data.token_text.empty();
  std::string body =
      tokens
          ? table_head({"Path", "#Tokens", "#Size", "#Own", "Last used", "Namespace", "Sessions",
                        "First token ids"})
          : table_head({"Path", "#Tokens", "#Size", "#Own", "Last used", "Namespace", "Sessions"});
  for (const PathInfo& path : data.paths) {
    body += "<tr>" + cell(path_name(path.path), "code") + cell(format_count(path.tokens), "n") +
            cell(format_bytes(path.bytes), "n") + cell(format_bytes(path.own_bytes), "n") +
            cell(format_age(path.last_used_unix_ns)) + cell(namespace_text(path.name_space)) +
            cell(fmt::format("{}", fmt::join(path.sessions, ", ")));
    if (tokens) {
      const auto found = data.token_text.find(path.path);
      body += cell(found == data.token_text.end() ? "" : found->second, "code");
    }
    body += "</tr>\n";
  }
  body += table_end(0);
  if (data.path_count > data.paths.size()) {
    body += fmt::format("<p class=\"more\">and {} smaller ones</p>\n",
                        format_count(data.path_count - data.paths.size()));
  }
  return section("Largest paths", "Own is what no other path shares.", body);
}

std::string processes(const ReportData& data) {
  if (data.processes.empty()) return "";
  std::string body = table_head({"#PID", "Command", "State", "#Pinned", "#Reserved", "Opened"});
  const std::uint64_t block_bytes = data.info.geometry.block_bytes();
  for (std::size_t i = 0; i < data.processes.size() && i < shown_rows; ++i) {
    const Process& process = data.processes[i];
    const auto held = [&](std::uint64_t blocks) {
      return cell(data.seated ? format_bytes(blocks * block_bytes) : "?", "n");
    };
    body += "<tr>" + cell(std::to_string(process.pid), "n") + cell(process.command) +
            cell(process.alive ? "alive" : "dead", process.alive ? "" : "warn") +
            held(process.pinned_blocks) + held(process.reserved_blocks) +
            cell(format_age(process.opened_unix_ns)) + "</tr>\n";
  }
  return section("Processes", "Who has the store open.", body + table_end(data.processes.size()));
}

std::string events(const ReportData& data) {
  if (data.events.empty()) return "";
  std::string body = table_head({"Time", "What happened"});
  for (std::size_t i = 0; i < data.events.size() && i < shown_rows; ++i) {
    const Event& event = data.events[data.events.size() - 1 - i];
    body += "<tr>" + cell(format_time(event.unix_ns), "code") + cell(event_text(event), "code") +
            "</tr>\n";
  }
  return section("Events", "The newest first.", body + table_end(data.events.size()));
}

std::string identity(const ReportData& data) {
  const auto row = [](std::string_view name, std::string_view value) {
    return "<tr>" + cell(name) + cell(value, "code") + "</tr>\n";
  };
  std::string body = "<div class=\"scroll\"><table><tbody>\n";
  for (const auto& [key, value] : data.info.model.entries()) body += row("model " + key, value);
  if (data.info.model.unnamed()) body += row("model", "unnamed");
  body += row("geometry", geometry_line(data.info.geometry));
  body += row("identifier", format_uuid(data.info.uuid));
  body += row("created", format_time(data.info.created_unix_ns));
  body += row("segments",
              fmt::format("{} of {} each, at most {}", data.info.segments,
                          format_bytes(data.info.segment_file_bytes), data.info.max_segments));
  body += row("format version", std::to_string(data.info.write_version));
  return section("What it is made for", "Two stores mix only if all of this is equal.",
                 body + "</tbody></table></div>\n");
}

}  // namespace

std::string report_page(const ReportData& data) {
  const std::string label = html_text(data.label);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      // Even if something should slip through: nothing runs here, and nothing is fetched.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'\">\n<title>{} - esker</title>\n<style>{}</style>\n</head>\n"
      "<body>\n<main>\n<h1>{}</h1>\n<p class=\"sub\">{} &middot; {} &middot; esker {}</p>\n",
      label, report_style(), label, html_text(model_line(data.info.model)),
      html_text(format_time(data.taken_unix_ns)), html_text(version()));
  html += cards(data);
  html += section("Room",
                  fmt::format("Who has which part of {}.", format_bytes(data.info.capacity_bytes)),
                  room_chart(data));
  html += trie(data);
  html += section("Hits and misses",
                  data.hits.empty() ? "Tokens that lookups asked for."
                                    : "Tokens that lookups asked for while the store was watched.",
                  hit_chart(data));
  html += section("Age", "When the stored bytes came, and when they were last needed.",
                  time_chart(data));
  html += sessions(data) + paths(data) + processes(data) + events(data) + identity(data);
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace esker::cli
