// Invariants
// 1. A stem never contains '.' or '/': the parts of a file name can always be told apart.
// 2. Of all stems that decode to a name only the canonical one is accepted.
#include "catalog/file_names.hpp"

#include <array>
#include <vector>

#include "base/error.hpp"
#include "catalog/session_files.hpp"

namespace esker::detail {

namespace {

constexpr std::size_t suffix_digits = 16;

void append_escaped(std::string& out, char letter) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const auto byte = static_cast<std::uint8_t>(letter);
  out += '%';
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

int upper_hex_value(char letter) noexcept {
  if (letter >= '0' && letter <= '9') return letter - '0';
  return letter >= 'A' && letter <= 'F' ? letter - 'A' + 10 : -1;
}

std::optional<std::uint64_t> read_suffix(std::string_view text) noexcept {
  if (text.size() != suffix_digits) return std::nullopt;
  std::uint64_t value = 0;
  for (const char letter : text) {
    const bool digit = letter >= '0' && letter <= '9';
    if (!digit && (letter < 'a' || letter > 'f')) return std::nullopt;
    value = value << 4 | static_cast<std::uint64_t>(digit ? letter - '0' : letter - 'a' + 10);
  }
  return value;
}

}  // namespace

bool is_plain_letter(char letter) noexcept {
  return (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z') ||
         (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
}

std::string encode_session_name(std::string_view name) {
  std::string stem;
  stem.reserve(name.size());
  for (const char letter : name) {
    if (is_plain_letter(letter)) {
      stem += letter;
    } else {
      append_escaped(stem, letter);
    }
  }
  return stem;
}

std::optional<std::string> decode_session_name(std::string_view stem) {
  std::string name;
  for (std::size_t at = 0; at < stem.size(); ++at) {
    if (stem[at] != '%') {
      name += stem[at];
      continue;
    }
    if (stem.size() - at < 3) return std::nullopt;
    const int high = upper_hex_value(stem[at + 1]);
    const int low = upper_hex_value(stem[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    name += static_cast<char>(high * 16 + low);
    at += 2;
  }
  if (!check_session_name(name) || encode_session_name(name) != stem) return std::nullopt;
  return name;
}

std::string session_file_name(std::string_view stem) { return std::string(stem) + ".session"; }

std::string token_file_name(std::string_view stem, std::uint64_t suffix) {
  return std::string(stem) + "." + hex(suffix) + ".tokens";
}

std::string state_file_name(std::string_view stem, std::uint64_t suffix, std::string_view label) {
  return std::string(stem) + "." + hex(suffix) + "." + std::string(label) + ".state";
}

SessionFileName parse_file_name(std::string_view file) noexcept {
  using Kind = SessionFileName::Kind;
  SessionFileName name;
  if (file.starts_with(file_names::temporary_prefix)) {
    name.kind = Kind::temporary;
    return name;
  }
  if (file.ends_with(".session")) {
    name.kind = Kind::session;
    name.stem = file.substr(0, file.size() - std::string_view(".session").size());
    return name;
  }
  std::array<std::string_view, 4> parts;
  std::size_t count = 0;
  for (std::string_view rest = file;; ++count) {
    if (count == parts.size()) return name;
    const std::size_t dot = rest.find('.');
    parts[count] = rest.substr(0, dot);
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  ++count;
  const auto suffix = read_suffix(parts[1]);
  if (!suffix || parts[0].empty()) return name;
  if (count == 3 && parts[2] == "tokens") name.kind = Kind::tokens;
  if (count == 4 && parts[3] == "state" && !parts[2].empty()) {
    name.kind = Kind::state;
    name.label = parts[2];
  }
  name.stem = parts[0];
  name.suffix = *suffix;
  return name;
}

std::string listed_name(std::string_view file) {
  const SessionFileName parsed = parse_file_name(file);
  if (auto name = decode_session_name(parsed.stem)) return *name;
  std::string shown;
  for (const char letter : file) {
    if (letter > ' ' && letter < 0x7F) {
      shown += letter;
    } else {
      append_escaped(shown, letter);
    }
  }
  return shown;
}

}  // namespace esker::detail
