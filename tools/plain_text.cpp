#include "plain_text.hpp"

#include <algorithm>

namespace esker::cli {

namespace {

/// The bytes of the letter that `text` begins with: 1 to 4, or 0 where that is no UTF-8.
std::size_t letter_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  constexpr std::size_t by_high_bits[] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 3, 4};
  const std::size_t bytes = by_high_bits[byte(0) >> 4U];
  if (bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  return bytes;
}

/// Whether a terminal obeys this letter of so many bytes in place of showing it: an introducer of
/// escape sequences, as a byte or as one of U+0080 to U+009F, or a letter that begins a line or
/// turns the direction of writing, with which one name could be made to look like another.
bool is_control(std::string_view letter) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(letter[i]); };
  if (letter.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (letter.size() == 2) return byte(0) == 0xC2 ? byte(1) < 0xA0 : letter == "\u061C";
  const auto between = [&](std::string_view first, std::string_view last) {
    return letter.size() == first.size() && letter >= first && letter <= last;
  };
  return between("\u200E", "\u200F") || between("\u2028", "\u202E") || between("\u2066", "\u2069");
}

}  // namespace

std::string harmless(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = letter_bytes(text);
    const std::string_view letter = text.substr(0, std::max<std::size_t>(bytes, 1));
    out += bytes == 0 || is_control(letter) ? "?" : letter;
    text.remove_prefix(letter.size());
  }
  return out;
}

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char letter) {
    return (static_cast<unsigned char>(letter) & 0xC0U) != 0x80U;
  }));
}

std::string fitted(std::string_view text, std::size_t columns) {
  std::string out;
  std::size_t used = 0;
  while (!text.empty() && used < columns) {
    const std::string_view letter = text.substr(0, std::max<std::size_t>(letter_bytes(text), 1));
    out += letter;
    text.remove_prefix(letter.size());
    ++used;
  }
  return out + std::string(columns - used, ' ');
}

}  // namespace esker::cli
