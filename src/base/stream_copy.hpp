#pragma once

#include <cstddef>

namespace esker::detail {

/// Calls that copy at least this much go past the caches: the target would not stay there anyway,
/// and ordinary stores would first read it from memory.
inline constexpr std::size_t stream_copy_bytes = std::size_t{1} << 20;

/// Copies `bytes` from `source`, which should be in a cache, with stores that go past the caches;
/// meanwhile asks for as many bytes at `next` (or nullptr), which will be wanted after that. Plain
/// memcpy where the processor has no such stores. Call `end_of_streams` before anybody else is told
/// of the copy.
void stream_copy(std::byte* target, const std::byte* source, std::size_t bytes,
                 const std::byte* next) noexcept;

/// Orders all streamed stores of this thread before what follows.
void end_of_streams() noexcept;

}  // namespace esker::detail
