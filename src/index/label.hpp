#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <esker/geometry.hpp>
#include <span>

namespace esker::detail {

/// Token ids as a block's label holds them.
[[nodiscard]] inline std::span<const std::byte> label_of(Tokens tokens) noexcept {
  return std::as_bytes(tokens);
}

/// How many leading tokens a label shares with a prompt. A label need not be aligned.
[[nodiscard]] inline std::uint32_t common_tokens(std::span<const std::byte> label,
                                                 Tokens prompt) noexcept {
  const std::size_t most = label.size() / 4 < prompt.size() ? label.size() / 4 : prompt.size();
  std::uint32_t common = 0;
  while (common < most &&
         std::memcmp(label.data() + std::size_t{4} * common, &prompt[common], 4) == 0) {
    ++common;
  }
  return common;
}

}  // namespace esker::detail
