#pragma once

#include <cstdint>
#include <string_view>

namespace esker {

/// Version of this library.
[[nodiscard]] std::string_view version() noexcept;

/// What this library writes, and the oldest writer whose stores it still reads.
inline constexpr std::uint32_t format_write_version = 1;
inline constexpr std::uint32_t format_read_version = 1;

}  // namespace esker
