#include "report_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "html.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

constexpr double chart_width = 1120;
constexpr std::uint64_t ns_per_s = 1'000'000'000;

double scaled(std::uint64_t value, std::uint64_t most, double height) {
  return most == 0 ? 0 : height * static_cast<double>(value) / static_cast<double>(most);
}

std::string bar(std::string_view kind, std::string_view tip, double x, double y, double width,
                double height) {
  return fmt::format(
      "<g class=\"{}\"><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></g>\n",
      kind, html_text(tip), html_number(x), html_number(y), html_number(width),
      html_number(height));
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", html_number(x),
                     html_number(y), anchor, html_text(text));
}

std::string rule(double y) {
  return fmt::format("<line class=\"rule\" x1=\"0\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>\n", chart_width,
                     html_number(y), html_number(y));
}

/// "12 days ago" and the like at five places below a chart, as times before its end.
std::string time_axis(std::uint64_t begin_ns, std::uint64_t end_ns, double y) {
  constexpr int marks = 4;
  std::string svg;
  for (int i = 0; i <= marks; ++i) {
    const std::uint64_t seconds =
        (end_ns - begin_ns) / ns_per_s * static_cast<std::uint64_t>(marks - i) / marks;
    const std::string text = i == marks          ? "now"
                             : seconds < 120     ? fmt::format("{} s ago", seconds)
                             : seconds < 7200    ? fmt::format("{} min ago", seconds / 60)
                             : seconds < 172'800 ? fmt::format("{} h ago", seconds / 3600)
                                                 : fmt::format("{} days ago", seconds / 86400);
    const std::string_view anchor = i == 0 ? "start" : i == marks ? "end" : "middle";
    svg += text_at(chart_width * i / marks, y, anchor, text);
  }
  return svg;
}

std::string key(std::string_view kind, std::string_view text) {
  return fmt::format("<li><span class=\"swatch {}\"></span>{}</li>\n", kind, text);
}

std::string hits_since_boot(const ReportData& data) {
  const Counters& count = data.stats.counters;
  if (!data.seated) {
    return "<p class=\"none\">Counters are not known: no seat was free, or the disk is "
           "read-only.</p>\n";
  }
  const std::uint64_t hit = std::min(count.hit_tokens, count.lookup_tokens);
  const double width = scaled(hit, count.lookup_tokens, chart_width);
  std::string svg = fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} 34\">\n", chart_width);
  svg += bar("track", "no lookups", 0, 0, chart_width, 34);
  if (count.lookup_tokens != 0) {
    svg += bar("hit", format_items(hit, "token") + " found", 0, 0, width, 34);
    svg += bar("miss", format_items(count.lookup_tokens - hit, "token") + " not found", width, 0,
               chart_width - width, 34);
  }
  return svg + "</svg>\n" +
         fmt::format(
             "<p class=\"more\">{} of {} tokens found in {}, since {}. How it goes over "
             "time is only known while someone looks: <code>esker report --watch "
             "60s</code> does.</p>\n",
             format_count(hit), format_count(count.lookup_tokens),
             format_items(count.lookups, "lookup"),
             html_text(format_time(data.stats.since_unix_ns)));
}

struct HitColumn {
  std::uint64_t hit = 0;
  std::uint64_t miss = 0;
  double seconds = 0;
};

std::vector<HitColumn> columns_of(const std::vector<HitSample>& samples) {
  std::vector<HitColumn> columns;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const HitSample& a = samples[i - 1];
    const HitSample& b = samples[i];
    // Counters that began anew in between say nothing.
    const bool grown = b.lookup_tokens >= a.lookup_tokens && b.hit_tokens >= a.hit_tokens;
    const std::uint64_t asked = grown ? b.lookup_tokens - a.lookup_tokens : 0;
    const std::uint64_t hit = grown ? std::min(b.hit_tokens - a.hit_tokens, asked) : 0;
    const double seconds = static_cast<double>(b.unix_ns - std::min(a.unix_ns, b.unix_ns)) / 1e9;
    columns.push_back({hit, asked - hit, seconds});
  }
  return columns;
}

/// Blocks by time, and the time that the columns span.
struct TimeColumns {
  static constexpr std::size_t count = 80;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::array<std::uint64_t, count> published{};
  std::array<std::uint64_t, count> used{};

  explicit TimeColumns(const ReportData& data) : begin_ns(UINT64_MAX), end_ns(data.taken_unix_ns) {
    for (const BlockInfo& block : data.blocks) {
      if (block.published_unix_ns != 0) begin_ns = std::min(begin_ns, block.published_unix_ns);
    }
    // A store that was filled this minute still gets an axis.
    begin_ns = std::min(begin_ns, end_ns - std::min(end_ns, 60 * ns_per_s));
    const std::uint64_t bytes = data.info.geometry.block_bytes();
    for (const BlockInfo& block : data.blocks) {
      published[column(block.published_unix_ns)] += bytes;
      used[column(block.last_used_unix_ns)] += bytes;
    }
  }
  [[nodiscard]] std::size_t column(std::uint64_t unix_ns) const {
    const std::uint64_t time = std::clamp(unix_ns, begin_ns, end_ns) - begin_ns;
    const double part = static_cast<double>(time) / static_cast<double>(end_ns - begin_ns);
    return std::min(count - 1, static_cast<std::size_t>(part * count));
  }
};

}  // namespace

std::string hit_chart(const ReportData& data) {
  const std::vector<HitColumn> columns = columns_of(data.hits);
  if (columns.empty()) return hits_since_boot(data);
  constexpr double height = 150;
  std::uint64_t most = 0;
  for (const HitColumn& column : columns) most = std::max(most, column.hit + column.miss);
  std::string svg =
      fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\">\n", chart_width, height + 26);
  const double step = chart_width / static_cast<double>(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const HitColumn& column = columns[i];
    const double hit = scaled(column.hit, most, height - 20);
    const double miss = scaled(column.miss, most, height - 20);
    const std::string tip =
        fmt::format("{} found, {} not found in {:.1f} s", format_items(column.hit, "token"),
                    format_count(column.miss), column.seconds);
    const double x = step * static_cast<double>(i);
    const double width = std::max(step - 2, 1.0);
    if (column.hit != 0) svg += bar("hit", tip, x, height - hit, width, hit);
    if (column.miss != 0) svg += bar("miss", tip, x, height - hit - miss, width, miss);
  }
  svg += rule(height);
  svg += text_at(0, 12, "start",
                 most == 0 ? "no lookups while it was watched"
                           : format_items(most, "token") + " in the highest column");
  svg += time_axis(data.hits.front().unix_ns, data.hits.back().unix_ns, height + 20);
  return "<ul class=\"legend\">" + key("hit", "tokens found") + key("miss", "tokens not found") +
         "</ul>\n" + svg + "</svg>\n";
}

std::string time_chart(const ReportData& data) {
  if (data.blocks.empty()) return "<p class=\"none\">Nothing is stored.</p>\n";
  constexpr double half = 84;
  const TimeColumns columns(data);
  const std::uint64_t most =
      std::max(*std::max_element(columns.published.begin(), columns.published.end()),
               *std::max_element(columns.used.begin(), columns.used.end()));
  std::string svg =
      fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\">\n", chart_width, 2 * half + 26);
  const double step = chart_width / static_cast<double>(TimeColumns::count);
  for (std::size_t i = 0; i < TimeColumns::count; ++i) {
    const double x = step * static_cast<double>(i);
    const double up = scaled(columns.published[i], most, half - 18);
    const double down = scaled(columns.used[i], most, half - 18);
    if (columns.published[i] != 0) {
      svg += bar("published", format_bytes(columns.published[i]) + " published", x, half - up,
                 step - 2, up);
    }
    if (columns.used[i] != 0) {
      svg += bar("used", format_bytes(columns.used[i]) + " last used", x, half + 1, step - 2, down);
    }
  }
  svg += rule(half + 0.5);
  svg += text_at(0, 12, "start", format_bytes(most) + " in the highest column");
  svg += time_axis(columns.begin_ns, columns.end_ns, 2 * half + 20);
  return "<ul class=\"legend\">" + key("published", "published then") +
         key("used", "last used then") + "</ul>\n" + svg + "</svg>\n";
}

std::string room_chart(const ReportData& data) {
  const Stats& stats = data.stats;
  const std::uint64_t block = stats.block_bytes;
  const std::uint64_t kept = std::min(stats.blocks_kept, stats.blocks_ready);
  const std::uint64_t known = stats.file_bytes + stats.cold_file_bytes;
  const std::uint64_t in_blocks = stats.blocks_total * block;
  const struct {
    std::string_view kind;
    std::string_view text;
    std::uint64_t bytes;
  } parts[] = {
      {"kept", "kept sessions", kept * block},
      {"ready", "other stored blocks", (stats.blocks_ready - kept) * block},
      {"busy", "being written or let go", (stats.blocks_reserved + stats.blocks_retired) * block},
      {"bad", "damaged blocks", stats.blocks_bad * block},
      {"cold", "cold files", stats.cold_file_bytes},
      {"own", "headers and index", stats.file_bytes - std::min(stats.file_bytes, in_blocks)},
      {"other", "session and other files",
       data.info.disk_bytes - std::min(data.info.disk_bytes, known)},
      {"free", "free blocks", stats.blocks_free * block},
  };
  std::uint64_t taken = 0;
  for (const auto& part : parts) taken += part.bytes;
  const std::uint64_t whole = std::max({data.info.capacity_bytes, taken, std::uint64_t{1}});
  std::string svg = fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} 34\">\n", chart_width);
  svg +=
      bar("track", format_bytes(whole - taken) + " not taken from the disk", 0, 0, chart_width, 34);
  std::string legend = "<ul class=\"legend\">";
  double x = 0;
  for (const auto& part : parts) {
    if (part.bytes == 0) continue;
    const double width = scaled(part.bytes, whole, chart_width);
    const std::string tip = fmt::format("{}: {}", part.text, format_bytes(part.bytes));
    svg += bar(part.kind, tip, x, 0, std::max(width - 1, 0.5), 34);
    x += width;
    legend += key(part.kind, fmt::format("{} <b>{}</b>", part.text, format_bytes(part.bytes)));
  }
  legend +=
      key("track", fmt::format("not taken from the disk <b>{}</b>", format_bytes(whole - taken)));
  return svg + "</svg>\n" + legend + "</ul>\n";
}

}  // namespace esker::cli
