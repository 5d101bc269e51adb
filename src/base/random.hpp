#pragma once

#include <sys/random.h>
#include <array>
#include <cstdint>
#include <span>

namespace esker::detail {

/// Fills from the kernel's generator; false when it does not answer.
inline bool fill_random(std::span<std::uint8_t> bytes) noexcept {
  return getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
}

inline std::uint64_t random_u64() noexcept {
  std::uint64_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

}  // namespace esker::detail
