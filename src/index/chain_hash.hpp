#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace esker::detail {

/// Hashes that find candidates; they never prove anything. A step's hash seeds the next, so the
/// hash of a block depends on the namespace and on every token up to its end.
namespace chain {

/// Where the paths of a namespace start.
[[nodiscard]] std::uint64_t root(const std::array<std::uint8_t, 16>& secret,
                                 std::string_view name_space) noexcept;

/// Continues `parent` by a label, or by the first bytes of one.
[[nodiscard]] std::uint64_t extend(std::uint64_t parent, std::span<const std::byte> label) noexcept;

/// The hash of an opaque key in the namespace whose root is `root_hash`.
[[nodiscard]] std::uint64_t key(std::uint64_t root_hash, std::string_view key) noexcept;

/// A test build keeps 8 bits, so that everything collides.
#ifdef ESKER_NARROW_HASH
inline constexpr bool narrow = true;
#else
inline constexpr bool narrow = false;
#endif

}  // namespace chain

}  // namespace esker::detail
