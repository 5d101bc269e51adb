#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "html.hpp"
#include "icicle.hpp"
#include "path_name.hpp"
#include "plain_text.hpp"
#include "report_charts.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

constexpr double row_height = 26;
constexpr std::uint64_t ns_per_s = 1'000'000'000;

struct Age {
  std::uint64_t seconds;  ///< younger than this
  std::string_view text;
};
constexpr std::array<Age, age_buckets> ages{{{60, "under 1 min"},
                                             {600, "under 10 min"},
                                             {3600, "under 1 h"},
                                             {6 * 3600, "under 6 h"},
                                             {24 * 3600, "under 1 day"},
                                             {7 * 86400, "under 7 days"},
                                             {30 * 86400, "under 30 days"},
                                             {UINT64_MAX, "older"}}};

/// Bytes that are told apart, in parts of the store: bucket 0 is the smallest.
struct Part {
  double most;
  std::string_view text;
};
constexpr std::array<Part, 6> parts{{{0.001, "under 0.1 %"},
                                     {0.01, "under 1 %"},
                                     {0.05, "under 5 %"},
                                     {0.2, "under 20 %"},
                                     {0.5, "under 50 %"},
                                     {2, "50 % and more"}}};

std::size_t part_bucket(std::uint64_t bytes, std::uint64_t all) {
  const double part =
      static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(all, 1));
  const auto fits = [part](const Part& bucket) { return part < bucket.most; };
  return static_cast<std::size_t>(std::find_if(parts.begin(), parts.end() - 1, fits) -
                                  parts.begin());
}

std::string name_of(const Branch& branch) {
  return branch.title.empty() ? path_name(branch.path) : branch.title;
}

/// What a piece is, for who points at it.
std::string tip(const ReportData& data, const Icicle& piece) {
  const std::string use = format_age(piece.last_used_unix_ns);
  if (piece.branch == UINT32_MAX) {
    return fmt::format("{}: {} in {}, last used {}",
                       format_count(piece.branches) + " small branches", format_bytes(piece.bytes),
                       format_items(piece.paths, "path"), use);
  }
  const Branch& branch = data.branches[piece.branch];
  std::string text = fmt::format("{}: {}", name_of(branch), format_bytes(piece.bytes));
  if (branch.blocks != 0) {
    text += fmt::format(", {} of its own ({} from position {})", format_bytes(branch.own_bytes),
                        format_items(branch.tokens, "token"), format_count(branch.first_token));
  }
  text += fmt::format(", {}, last used {}", format_items(piece.paths, "path"), use);
  if (branch.pins != 0) text += fmt::format(", pinned by {}", branch.pins);
  if (piece.cut) text += "; more follows than is shown";
  const auto tokens = data.token_text.find(branch.path);
  if (tokens != data.token_text.end()) text += "; tokens " + tokens->second;
  return text;
}

/// As much of it as has room.
std::string label(const ReportData& data, const Icicle& piece) {
  if (piece.branch == UINT32_MAX) return "";
  const Branch& branch = data.branches[piece.branch];
  const std::string first =
      branch.blocks == 0 ? name_of(branch) : format_items(branch.tokens, "token");
  const auto fits = [&piece](const std::string& text) {
    constexpr double letter_width = 6.6;
    return static_cast<double>(width(text)) * letter_width + 12 <= piece.width;
  };
  const std::string both = first + "  " + format_bytes(piece.bytes);
  if (fits(both)) return both;
  return fits(first) ? first : "";
}

std::string piece_svg(const ReportData& data, const Icicle& piece) {
  const std::uint64_t own =
      piece.branch == UINT32_MAX ? piece.bytes : data.branches[piece.branch].own_bytes;
  const bool above = piece.branch != UINT32_MAX && data.branches[piece.branch].blocks == 0;
  const std::string kind =
      above ? "top"
            : fmt::format("a{} b{}", age_bucket(piece.last_used_unix_ns, data.taken_unix_ns),
                          part_bucket(own, data.branches.front().total_bytes));
  // A gap of a pixel between pieces that are wide enough to spare it.
  const double width = piece.width > 4 ? piece.width - 1 : std::max(piece.width - 0.3, 0.3);
  const double y = row_height * piece.row;
  std::string svg = fmt::format(
      "<g class=\"{}\"><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"25\"/>", kind,
      html_text(tip(data, piece)), html_number(piece.x), html_number(y), html_number(width));
  if (const std::string text = label(data, piece); !text.empty()) {
    svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", html_number(piece.x + 6),
                       html_number(y + 17), html_text(text));
  }
  return svg + "</g>\n";
}

std::string swatch(std::string_view kind, std::string_view text, std::uint64_t bytes,
                   std::uint64_t all) {
  return fmt::format("<li><span class=\"swatch {}\"></span>{} <b>{}</b></li>\n", kind, text,
                     format_share(bytes, all));
}

}  // namespace

std::size_t age_bucket(std::uint64_t unix_ns, std::uint64_t now_unix_ns) {
  const std::uint64_t seconds = now_unix_ns > unix_ns ? (now_unix_ns - unix_ns) / ns_per_s : 0;
  const auto fits = [seconds](const Age& age) { return seconds < age.seconds; };
  return static_cast<std::size_t>(std::find_if(ages.begin(), ages.end() - 1, fits) - ages.begin());
}

std::string icicle_chart(const ReportData& data) {
  if (data.blocks.empty()) return "<p class=\"none\">Nothing is stored.</p>\n";
  const IcicleLimits limits;
  const std::vector<Icicle> pieces = lay_out(data.branches, limits);
  std::uint32_t rows = 0;
  for (const Icicle& piece : pieces) rows = std::max(rows, piece.row + 1);
  std::string svg = fmt::format(
      "<svg class=\"icicle\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"The trie: below each "
      "branch those that follow it\">\n",
      limits.width, row_height * rows);
  for (const Icicle& piece : pieces) svg += piece_svg(data, piece);
  return svg + "</svg>\n";
}

std::string icicle_legend(const ReportData& data) {
  const std::uint64_t all = data.branches.front().total_bytes;
  const std::uint64_t block_bytes = data.info.geometry.block_bytes();
  std::array<std::uint64_t, age_buckets> by_age{};
  for (const BlockInfo& block : data.blocks) {
    by_age[age_bucket(block.last_used_unix_ns, data.taken_unix_ns)] += block_bytes;
  }
  std::array<std::uint64_t, parts.size()> by_part{};
  for (const Branch& branch : data.branches) {
    by_part[part_bucket(branch.own_bytes, all)] += branch.own_bytes;
  }
  std::string html = "<ul class=\"legend ages\"><li class=\"lead\">last used</li>\n";
  for (std::size_t i = 0; i < ages.size(); ++i) {
    if (by_age[i] != 0) html += swatch(fmt::format("a{}", i), ages[i].text, by_age[i], all);
  }
  html += "</ul>\n<ul class=\"legend sizes\"><li class=\"lead\">a branch alone holds</li>\n";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (by_part[i] != 0) html += swatch(fmt::format("b{}", i), parts[i].text, by_part[i], all);
  }
  return html + "</ul>\n";
}

}  // namespace esker::cli
