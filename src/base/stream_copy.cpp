#include "base/stream_copy.hpp"

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace esker::detail {

#if defined(__SSE2__)

namespace {

constexpr std::size_t line_bytes = 64;

/// One cache line; `target` is aligned to 16 bytes.
void stream_line(std::byte* target, const std::byte* source) noexcept {
  const auto load = [source](std::size_t at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + at));
  };
  const __m128i a = load(0);
  const __m128i b = load(16);
  const __m128i c = load(32);
  const __m128i d = load(48);
  const auto store = [target](std::size_t at, __m128i value) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(target + at), value);
  };
  store(0, a);
  store(16, b);
  store(32, c);
  store(48, d);
}

}  // namespace

void stream_copy(std::byte* target, const std::byte* source, std::size_t bytes,
                 const std::byte* next) noexcept {
  const std::size_t odd = reinterpret_cast<std::uintptr_t>(target) % line_bytes;
  const std::size_t head = odd == 0 ? 0 : line_bytes - odd;
  if (bytes < head + line_bytes) {
    std::memcpy(target, source, bytes);
    return;
  }
  std::memcpy(target, source, head);
  std::size_t at = head;
  for (; at + line_bytes <= bytes; at += line_bytes) {
    if (next != nullptr) _mm_prefetch(reinterpret_cast<const char*>(next + at), _MM_HINT_T0);
    stream_line(target + at, source + at);
  }
  std::memcpy(target + at, source + at, bytes - at);
}

void end_of_streams() noexcept { _mm_sfence(); }

#else

void stream_copy(std::byte* target, const std::byte* source, std::size_t bytes,
                 const std::byte*) noexcept {
  std::memcpy(target, source, bytes);
}

void end_of_streams() noexcept {}

#endif

}  // namespace esker::detail
