#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <memory>
#include <mutex>

#include "region/segment.hpp"

namespace esker::detail {

/// The segments that this handle has mapped. Slots are filled once and never emptied before the
/// handle dies, so readers need no lock. A missing or damaged segment stays unmapped: its blocks
/// are misses, and nothing is allocated in it.
class SegmentMap {
 public:
  SegmentMap(const Directory& segments, const SegmentPlan& plan, std::uint32_t max_segments,
             bool writable);
  ~SegmentMap();

  [[nodiscard]] const SegmentPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] const SegmentLayout& layout() const noexcept { return plan_.layout; }
  /// Segments looked at so far, mapped or not.
  [[nodiscard]] std::uint32_t count() const noexcept {
    return count_.load(std::memory_order_acquire);
  }
  /// Maps segments up to `count`. Failures are kept for `failure`; returns how many there were.
  std::uint32_t map_up_to(std::uint32_t count) noexcept;
  /// Tries again what could not be mapped.
  void retry_failed() noexcept;
  /// Why segment `index` is not served, or an empty message.
  [[nodiscard]] Error failure(std::uint32_t index) const;

  [[nodiscard]] const Segment* segment(std::uint32_t index) const noexcept {
    return index < count() ? slots_[index].load(std::memory_order_acquire) : nullptr;
  }
  [[nodiscard]] const Segment* segment_of(std::uint32_t block) const noexcept {
    return segment(block / plan_.layout.segment_blocks());
  }
  [[nodiscard]] std::uint32_t local(std::uint32_t block) const noexcept {
    return block % plan_.layout.segment_blocks();
  }
  /// Header bytes of a block, or nullptr when its segment is not mapped.
  [[nodiscard]] const std::byte* header(std::uint32_t block) const noexcept {
    const Segment* owner = segment_of(block);
    return owner == nullptr ? nullptr
                            : owner->mapping.data() + plan_.layout.header_offset(local(block));
  }
  /// Rows of one plane of a block; its segment must be mapped.
  [[nodiscard]] const std::byte* rows(std::uint32_t block, std::size_t plane) const noexcept {
    return segment_of(block)->mapping.data() + plan_.layout.row_offset(plane, local(block), 0);
  }

  /// In a forked child: forget the mappings without unmapping.
  void abandon() noexcept;

 private:
  bool map_one(std::uint32_t index) noexcept;

  const Directory& segments_;
  SegmentPlan plan_;
  std::uint32_t max_segments_;
  bool writable_;
  std::unique_ptr<std::atomic<Segment*>[]> slots_;
  std::unique_ptr<Error[]> failures_;
  std::atomic<std::uint32_t> count_{0};
  mutable std::mutex mapping_mutex_;
};

}  // namespace esker::detail
