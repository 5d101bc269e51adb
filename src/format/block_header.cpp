#include "format/block_header.hpp"

#include <algorithm>
#include <cstring>

#include "base/hash.hpp"

namespace esker::detail {

namespace {

constexpr std::size_t checksum_begin = offsetof(BlockHeader, block);

struct SeedInput {
  std::array<std::uint8_t, 16> uuid;
  std::uint32_t block;
  std::uint32_t generation;
};
static_assert(sizeof(SeedInput) == 24);

}  // namespace

std::uint64_t block_seed(const std::array<std::uint8_t, 16>& uuid, std::uint32_t block,
                         std::uint32_t generation) noexcept {
  return xxh3_of(SeedInput{uuid, block, generation});
}

std::uint64_t block_checksum(std::span<const std::byte> header_and_label,
                             std::uint64_t seed) noexcept {
  const std::uint64_t sum = xxh3(header_and_label.subspan(checksum_begin), seed);
  return sum == 0 ? 1 : sum;
}

bool well_formed(const BlockHeader& header, std::uint32_t block_tokens,
                 std::uint32_t header_bytes) noexcept {
  if (header.magic != block_magic || header.header_bytes != header_bytes) return false;
  if (header.node_counter == 0 || header.namespace_bytes > max_namespace_bytes) return false;
  if (header.tokens == 0 || header.tokens > block_tokens || header.reserved0 != 0) return false;
  const auto zero = [](auto value) { return value == 0; };
  if (!std::all_of(header.reserved.begin(), header.reserved.end(), zero)) return false;
  if (!std::all_of(header.name_space.begin() + header.namespace_bytes, header.name_space.end(),
                   zero)) {
    return false;
  }
  switch (static_cast<BlockKind>(header.kind)) {
    case BlockKind::tokens:
      return header.label_bytes == 4 * header.tokens && header.first_token % block_tokens == 0 &&
             header.parent().root() == (header.first_token == 0);
    case BlockKind::key:
      return header.label_bytes >= 1 && header.label_bytes <= max_key_bytes &&
             header.first_token == 0 && header.parent().root() && header.tokens == block_tokens;
  }
  return false;
}

}  // namespace esker::detail
