// Invariants
// 1. Equal inputs give equal hashes in every process that opens the store: the seed is its secret.
// 2. Nothing but candidates depends on these values; a collision costs time, never a wrong block.
#include "index/chain_hash.hpp"

#include <cstring>

#include "base/hash.hpp"

namespace esker::detail::chain {

namespace {

constexpr std::uint64_t key_salt = 0x9E37'79B9'7F4A'7C15;

std::uint64_t shaped(std::uint64_t hash) noexcept {
  if constexpr (narrow) return (hash & 0xFF) * 0x0101'0101'0101'0101U;
  return hash;
}

}  // namespace

std::uint64_t root(const std::array<std::uint8_t, 16>& secret,
                   std::string_view name_space) noexcept {
  std::uint64_t seed = 0;
  std::memcpy(&seed, secret.data(), sizeof seed);
  return shaped(xxh3(std::as_bytes(std::span(name_space)), seed));
}

std::uint64_t extend(std::uint64_t parent, std::span<const std::byte> label) noexcept {
  return shaped(xxh3(label, parent));
}

std::uint64_t key(std::uint64_t root_hash, std::string_view key) noexcept {
  return shaped(xxh3(std::as_bytes(std::span(key)), root_hash ^ key_salt));
}

}  // namespace esker::detail::chain
