#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "format/block_header.hpp"
#include "region/segment_map.hpp"
#include "sync/control.hpp"

namespace esker::detail {

/// Proves that the header of a pinned READY block is the one that was published. A proof is kept
/// per block and generation, so each costs one hash per handle.
class Prover {
 public:
  Prover() noexcept = default;
  /// `proved`: one zeroed word per block, private to the handle; nullptr remembers nothing, for
  /// handles that cannot pin.
  Prover(const SegmentMap& segments, const Control& control,
         const std::array<std::uint8_t, 16>& uuid, std::uint32_t* proved) noexcept
      : segments_(&segments), control_(&control), uuid_(uuid), proved_(proved) {}

  /// The header in place, or nullptr when it is damaged or its segment is not mapped. The block is
  /// pinned and was READY with `generation` after the pin.
  [[nodiscard]] const BlockHeader* prove(std::uint32_t block,
                                         std::uint32_t generation) const noexcept;

  /// The same without any state: for rebuilding and verifying, where nothing is pinned. `header`
  /// points to block_header_bytes bytes. The generation is the header's own.
  [[nodiscard]] bool valid(std::uint32_t block, const std::byte* header) const noexcept;

  [[nodiscard]] std::span<const std::byte> label(const BlockHeader& header) const noexcept {
    return {reinterpret_cast<const std::byte*>(&header) + sizeof(BlockHeader), header.label_bytes};
  }
  /// The payload checksum of one plane.
  [[nodiscard]] std::uint64_t sum(const BlockHeader& header, std::size_t plane) const noexcept;

 private:
  const SegmentMap* segments_ = nullptr;
  const Control* control_ = nullptr;
  std::array<std::uint8_t, 16> uuid_{};
  std::uint32_t* proved_ = nullptr;
};

}  // namespace esker::detail
