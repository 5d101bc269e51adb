#pragma once

#include <cstdint>

namespace esker::detail {

/// What is committed, at one moment. While the epoch stays, rows below the length stay as they
/// are: whoever drops positions starts a new epoch before a row is overwritten.
struct Moment {
  std::uint32_t epoch = 0;
  std::uint32_t length = 0;
  bool live = true;  ///< false: nobody has written to the file since this boot began

  [[nodiscard]] std::uint64_t pack() const noexcept { return std::uint64_t{epoch} << 32 | length; }
  [[nodiscard]] static Moment unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word), true};
  }
  [[nodiscard]] bool same_sequence(const Moment& other) const noexcept {
    return epoch == other.epoch && live == other.live;
  }
};

}  // namespace esker::detail
