#pragma once

#include <cstdint>
#include <ctime>

namespace esker::detail {

inline std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t unix_ns() noexcept { return clock_ns(CLOCK_REALTIME); }
inline std::uint64_t monotonic_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

/// Touch stamps count sixteenths of a second of the monotonic clock from 2^30 on, so that blocks
/// which were published up to two years before this boot still sort below those used since.
inline constexpr std::uint32_t stamp_origin = 1U << 30;
inline constexpr std::uint64_t stamp_ns = 62'500'000;

inline std::uint32_t stamp_now() noexcept {
  return stamp_origin + static_cast<std::uint32_t>(clock_ns(CLOCK_MONOTONIC_COARSE) / stamp_ns);
}

/// The stamp of a moment in unix time, as seen from now; a moment in the future counts as a little
/// more than now, so that everything until now is older.
inline std::uint32_t stamp_of_unix(std::uint64_t at_unix_ns) noexcept {
  const std::uint64_t now = unix_ns();
  const std::uint32_t stamp = stamp_now();
  if (at_unix_ns > now) return stamp + 1;
  const std::uint64_t age = (now - at_unix_ns) / stamp_ns;
  return age >= stamp ? 1 : stamp - static_cast<std::uint32_t>(age);
}

inline std::uint64_t unix_of_stamp(std::uint32_t stamp) noexcept {
  const std::uint32_t now = stamp_now();
  const std::uint64_t age = stamp >= now ? 0 : (now - stamp) * stamp_ns;
  return unix_ns() - age;
}

}  // namespace esker::detail
