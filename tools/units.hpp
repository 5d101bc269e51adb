#pragma once

#include <array>
#include <cstdint>
#include <esker/result.hpp>
#include <span>
#include <string>
#include <string_view>

namespace esker::cli {

/// "12.4 GiB", "96 B".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);
/// "1 048 576".
[[nodiscard]] std::string format_count(std::uint64_t count);
/// "1 block", "1 204 blocks".
[[nodiscard]] std::string format_items(std::uint64_t count, std::string_view item);
/// "76.8 %" of `whole`; "0 %" when that is 0.
[[nodiscard]] std::string format_share(std::uint64_t part, std::uint64_t whole);
/// "3 min ago" for a time in nanoseconds since 1970; "never" for 0.
[[nodiscard]] std::string format_age(std::uint64_t unix_ns);
/// "7d", "90s": as parse_duration reads it, in the largest unit that is exact.
[[nodiscard]] std::string format_duration(std::uint64_t seconds);
/// RFC 3339 in UTC: "2026-11-30T18:36:00.123Z".
[[nodiscard]] std::string format_time(std::uint64_t unix_ns);
[[nodiscard]] std::string format_uuid(std::span<const std::uint8_t, 16> uuid);
[[nodiscard]] std::string format_hex(std::string_view bytes);

[[nodiscard]] std::uint64_t now_unix_ns();

/// "64GiB", "64G" (both 2^30), "64GB" (10^9) or plain bytes; fractions are fine: "1.5G".
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);
/// "90s", "30m", "12h", "7d", "2w" in seconds.
[[nodiscard]] Result<std::uint64_t> parse_duration(std::string_view text);

/// The entry of `known` that was most likely meant by `typed`, or "".
[[nodiscard]] std::string_view nearest(std::string_view typed, std::span<const std::string> known);

}  // namespace esker::cli
