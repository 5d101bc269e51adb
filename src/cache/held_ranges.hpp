#pragma once

#include <cstdint>

namespace esker::detail {

/// What the calling thread holds: how many ranges of which layer cache. Lets a write of that thread
/// be refused, where the lock itself would wait for ever.
class HeldRanges {
 public:
  /// One range more of the cache with this serial number. False when memory is out.
  [[nodiscard]] static bool add(std::uint64_t cache) noexcept;
  static void remove(std::uint64_t cache) noexcept;
  [[nodiscard]] static bool has(std::uint64_t cache) noexcept;
};

}  // namespace esker::detail
