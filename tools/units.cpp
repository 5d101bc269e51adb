#include "units.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

namespace esker::cli {

namespace {

constexpr std::uint64_t ns_per_s = 1'000'000'000;

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kib = 1024.0;
constexpr std::array<Unit, 17> byte_units{{{"", 1},
                                           {"B", 1},
                                           {"K", kib},
                                           {"KIB", kib},
                                           {"KB", 1e3},
                                           {"M", kib* kib},
                                           {"MIB", kib* kib},
                                           {"MB", 1e6},
                                           {"G", kib* kib* kib},
                                           {"GIB", kib* kib* kib},
                                           {"GB", 1e9},
                                           {"T", kib* kib* kib* kib},
                                           {"TIB", kib* kib* kib* kib},
                                           {"TB", 1e12},
                                           {"P", kib* kib* kib* kib* kib},
                                           {"PIB", kib* kib* kib* kib* kib},
                                           {"PB", 1e15}}};

constexpr std::array<Unit, 5> time_units{
    {{"S", 1}, {"M", 60}, {"H", 3600}, {"D", 86400}, {"W", 7 * 86400}}};

/// A number, optional blanks, a unit out of `units`; fails without a match or above 2^63.
bool parse_quantity(std::string_view text, std::span<const Unit> units, std::uint64_t& value) {
  const std::size_t digits = text.find_first_not_of("0123456789.");
  std::string_view number = text.substr(0, digits);
  std::string_view rest = digits == std::string_view::npos ? "" : text.substr(digits);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  std::string unit(rest);
  std::transform(unit.begin(), unit.end(), unit.begin(), [](char letter) {
    return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  });
  const auto found =
      std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == unit; });
  if (number.empty() || found == units.end()) return false;

  const char* last = number.data() + number.size();
  std::uint64_t whole = 0;
  if (const auto read = std::from_chars(number.data(), last, whole);
      read.ec == std::errc{} && read.ptr == last && found->factor == 1) {
    value = whole;
    return true;
  }
  double fraction = 0;
  const auto read = std::from_chars(number.data(), last, fraction);
  constexpr double limit = 9.2e18;
  if (read.ec != std::errc{} || read.ptr != last || fraction * found->factor > limit) return false;
  value = static_cast<std::uint64_t>(std::llround(fraction * found->factor));
  return true;
}

tl::unexpected<Error> invalid(std::string message) {
  return tl::make_unexpected(Error{Errc::invalid, 0, std::move(message)});
}

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  for (std::size_t j = 0; j <= right.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < right.size(); ++j) {
      const std::size_t change = diagonal + (left[i] == right[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 7> names{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  std::size_t step = 0;
  // 1023.95 would print as "1024.0".
  while (value >= 1023.95 && step + 1 < names.size()) {
    value /= kib;
    ++step;
  }
  return fmt::format("{:.1f} {}", value, names[step]);
}

std::string format_count(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ' ');
  }
  return text;
}

std::string format_items(std::uint64_t count, std::string_view item) {
  return fmt::format("{} {}{}", format_count(count), item, count == 1 ? "" : "s");
}

std::string format_share(std::uint64_t part, std::uint64_t whole) {
  if (part == 0 || whole == 0) return "0 %";
  if (part == whole) return "100 %";
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  // Neither "0.0 %" nor "100.0 %" would be true here.
  return fmt::format("{:.1f} %", part < whole ? std::clamp(percent, 0.1, 99.9) : percent);
}

std::string format_age(std::uint64_t unix_ns) {
  if (unix_ns == 0) return "never";
  const std::uint64_t now = now_unix_ns();
  const std::uint64_t seconds = now > unix_ns ? (now - unix_ns) / ns_per_s : 0;
  if (seconds < 2) return "just now";
  if (seconds < 120) return fmt::format("{} s ago", seconds);
  if (seconds < 2 * 3600) return fmt::format("{} min ago", seconds / 60);
  if (seconds < 2 * 86400) return fmt::format("{} h ago", seconds / 3600);
  return fmt::format("{} days ago", seconds / 86400);
}

std::string format_duration(std::uint64_t seconds) {
  for (const auto& [letter, unit] : {std::pair{'d', 86400U}, {'h', 3600U}, {'m', 60U}}) {
    if (seconds >= unit && seconds % unit == 0) return fmt::format("{}{}", seconds / unit, letter);
  }
  return fmt::format("{}s", seconds);
}

std::string format_time(std::uint64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / ns_per_s);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds),
                     unix_ns % ns_per_s / 1'000'000);
}

std::string format_uuid(std::span<const std::uint8_t, 16> uuid) {
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

std::string format_hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::uint64_t now_unix_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t value = 0;
  if (parse_quantity(text, byte_units, value)) return value;
  return invalid(fmt::format("\"{}\" is no size: write it as 64GiB, 64G or 64000000000", text));
}

Result<std::uint64_t> parse_duration(std::string_view text) {
  std::uint64_t value = 0;
  if (parse_quantity(text, time_units, value)) return value;
  return invalid(
      fmt::format("\"{}\" is no length of time: write it as 90s, 30m, 12h, 7d or 2w", text));
}

std::string_view nearest(std::string_view typed, std::span<const std::string> known) {
  std::string_view best;
  // More than about a third of the letters wrong is another word, not a slip.
  std::size_t best_distance = std::max<std::size_t>(2, typed.size() / 3 + 1);
  for (const std::string& name : known) {
    const bool begins = typed.size() >= 2 && name.starts_with(typed);
    const std::size_t distance = begins ? 1 : edit_distance(typed, name);
    if (distance < best_distance || (best.empty() && distance == best_distance)) {
      if (distance >= name.size()) continue;
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace esker::cli
