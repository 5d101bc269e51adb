#include "path_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace esker::cli {

namespace {

constexpr std::size_t full_digits = 16;
constexpr std::size_t listed_candidates = 8;

tl::unexpected<Error> invalid(std::string message) {
  return tl::make_unexpected(Error{Errc::invalid, 0, std::move(message)});
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'F' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return out;
}

}  // namespace

std::string full_path_name(std::uint64_t path) { return fmt::format("{:016x}", path); }

std::string path_name(std::uint64_t path) {
  return full_path_name(path).substr(0, shown_path_digits);
}

bool looks_like_path(std::string_view text) noexcept {
  return !text.empty() && text.size() <= full_digits &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

Result<std::uint64_t> find_path(std::string_view text, std::span<const PathInfo> paths,
                                std::string_view lister) {
  if (!looks_like_path(text)) {
    return invalid(fmt::format("\"{}\" is no path name: 1 to 16 hex digits, as `{}` shows them",
                               text, lister));
  }
  const std::string wanted = lower(text);
  std::set<std::uint64_t> found;
  for (const PathInfo& path : paths) {
    if (full_path_name(path.path).starts_with(wanted)) found.insert(path.path);
  }
  if (found.size() == 1) return *found.begin();
  if (found.empty()) {
    return invalid(fmt::format("no path begins with {}: `{}` lists the {} that are stored", wanted,
                               lister, paths.size()));
  }
  std::string list;
  std::size_t listed = 0;
  for (const std::uint64_t path : found) {
    if (listed++ == listed_candidates) {
      list += " ...";
      break;
    }
    list += ' ' + full_path_name(path);
  }
  return invalid(
      fmt::format("{} is the beginning of {} paths; add digits:{}", wanted, found.size(), list));
}

Result<std::uint64_t> find_path_or_cold(std::string_view text, std::span<const PathInfo> paths) {
  auto found = find_path(text, paths);
  if (found || !looks_like_path(text) || text.size() != full_digits) return found;
  std::uint64_t path = 0;
  std::from_chars(text.data(), text.data() + text.size(), path, 16);
  return path;
}

}  // namespace esker::cli
