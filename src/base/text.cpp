#include "base/text.hpp"

#include <cstddef>
#include <cstdint>

namespace esker::detail {

namespace {

/// Length of the sequence that `lead` opens, or 0 when it opens none.
std::size_t sequence_bytes(std::uint8_t lead) noexcept {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;
}

std::uint32_t lead_bits(std::uint8_t lead, std::size_t bytes) noexcept {
  return bytes == 1 ? lead : lead & (0x7FU >> bytes);
}

bool is_control(std::uint32_t character) noexcept {
  return character < 0x20 || (character >= 0x7F && character < 0xA0);
}

bool is_overlong_or_surrogate(std::uint32_t character, std::size_t bytes) noexcept {
  if (bytes == 3) return character < 0x800 || (character >= 0xD800 && character < 0xE000);
  return bytes == 4 && (character < 0x10000 || character > 0x10FFFF);
}

}  // namespace

bool is_plain_text(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<std::uint8_t>(text[at]);
    const std::size_t bytes = sequence_bytes(lead);
    if (bytes == 0 || bytes > text.size() - at) return false;
    std::uint32_t character = lead_bits(lead, bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
      const auto next = static_cast<std::uint8_t>(text[at + i]);
      if ((next & 0xC0U) != 0x80U) return false;
      character = character << 6 | (next & 0x3FU);
    }
    if (is_control(character) || is_overlong_or_surrogate(character, bytes)) return false;
    at += bytes;
  }
  return true;
}

}  // namespace esker::detail
