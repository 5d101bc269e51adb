// Invariants
// 1. `proved[b] == g` means: this handle has checked the header of block b in its life g while it
//    held a pin on it. Headers do not change within a life.
// 2. Lengths are taken from the header only after it was found well formed.
#include "index/proof.hpp"

#include <atomic>
#include <cstring>

#include "base/hash.hpp"

namespace esker::detail {

bool Prover::valid(std::uint32_t block, const std::byte* bytes) const noexcept {
  const SegmentLayout& layout = segments_->layout();
  BlockHeader header;
  std::memcpy(&header, bytes, sizeof header);
  if (header.block != block ||
      !well_formed(header, layout.block_tokens(), layout.block_header_bytes())) {
    return false;
  }
  const std::span<const std::byte> covered(bytes, sizeof(BlockHeader) + layout.label_capacity());
  const std::uint64_t seed = block_seed(uuid_, block, header.generation);
  if (block_checksum(covered, seed) != header.checksum) return false;
  const std::span<const std::byte> sums(bytes + covered.size(), 8 * layout.planes().size());
  return xxh3(sums) == header.sums_checksum;
}

const BlockHeader* Prover::prove(std::uint32_t block, std::uint32_t generation) const noexcept {
  const std::byte* bytes = segments_->header(block);
  if (bytes == nullptr) return nullptr;
  const auto* header = reinterpret_cast<const BlockHeader*>(bytes);
  if (header->block != block || header->generation != generation) return nullptr;
  const std::uint64_t check = control_->check(block).load(std::memory_order_relaxed);
  if (check != 0 && check != header->checksum) return nullptr;
  if (proved_ == nullptr) return valid(block, bytes) ? header : nullptr;
  const std::atomic_ref<std::uint32_t> proved(proved_[block]);
  if (proved.load(std::memory_order_relaxed) == generation) return header;
  if (!valid(block, bytes)) return nullptr;
  proved.store(generation, std::memory_order_relaxed);
  return header;
}

std::uint64_t Prover::sum(const BlockHeader& header, std::size_t plane) const noexcept {
  std::uint64_t value = 0;
  const std::byte* sums = reinterpret_cast<const std::byte*>(&header) + sizeof(BlockHeader) +
                          segments_->layout().label_capacity();
  std::memcpy(&value, sums + 8 * plane, sizeof value);
  return value;
}

}  // namespace esker::detail
