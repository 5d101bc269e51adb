#pragma once

#include <cstdint>

#include "store/core.hpp"

namespace esker::detail {

// What a kept session holds is marked by a bit in the touch words of its blocks; the evictor passes
// them over. The bits are derived from what the session files say: a rebuild sets them again. What
// a session has appended since its last save needs none, being pinned by its handle.

[[nodiscard]] bool is_kept(const Core& core, std::uint32_t block) noexcept;

/// READY blocks that are kept.
[[nodiscard]] std::uint64_t kept_blocks(const Core& core) noexcept;

/// The bytes that may be kept: `wanted`, or half of the capacity for 0.
[[nodiscard]] std::uint64_t keep_limit(const Core& core, std::uint64_t wanted) noexcept;

/// Blocks of the pinned path that are not kept yet.
[[nodiscard]] std::uint64_t not_kept(const Core& core, const PrefixBody& path) noexcept;

/// Keeps the leading blocks of a pinned path, as many as the limit allows.
void keep_path(Core& core, const PrefixBody& path, std::uint64_t max_bytes) noexcept;

/// Tokens of the leading blocks that are kept.
[[nodiscard]] std::uint32_t kept_tokens(const Core& core, const PrefixBody& path) noexcept;

/// Marks exactly what the session files say is kept, the highest priority first, and nothing else.
/// What cannot be read is not kept, and the answer is false. The caller holds the SESSIONS lock, or
/// nobody else is there.
bool mark_kept(Core& core);

}  // namespace esker::detail
