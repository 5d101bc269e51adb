#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#define XXH_STATIC_LINKING_ONLY  // for a streaming state without an allocation
#include <xxhash.h>
#ifdef ESKER_XXH_DISPATCH
#include <xxh_x86dispatch.h>  // redirects the calls below to AVX2 or AVX-512 where the CPU has it
#endif

namespace esker::detail {

/// XXH3-64, the only checksum and hash function of Esker's files.
inline std::uint64_t xxh3(std::span<const std::byte> bytes, std::uint64_t seed = 0) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

template <class T>
std::uint64_t xxh3_of(const T& value, std::uint64_t seed = 0) noexcept {
  return XXH3_64bits_withSeed(&value, sizeof(T), seed);
}

/// XXH3-64 over pieces, for data that arrives in runs.
class StreamingHash {
 public:
  explicit StreamingHash(std::uint64_t seed = 0) noexcept {
    // A reset believes what it finds: memory of an earlier state with this seed, partly overwritten
    // since, would keep its broken secret.
    XXH3_INITSTATE(&state_);
    XXH3_64bits_reset_withSeed(&state_, seed);
  }
  void update(std::span<const std::byte> bytes) noexcept {
    XXH3_64bits_update(&state_, bytes.data(), bytes.size());
  }
  [[nodiscard]] std::uint64_t digest() const noexcept { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

}  // namespace esker::detail
