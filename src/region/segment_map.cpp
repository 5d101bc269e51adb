#include "region/segment_map.hpp"

#include <algorithm>

namespace esker::detail {

SegmentMap::SegmentMap(const Directory& segments, const SegmentPlan& plan,
                       std::uint32_t max_segments, bool writable)
    : segments_(segments),
      plan_(plan),
      max_segments_(max_segments),
      writable_(writable),
      slots_(std::make_unique<std::atomic<Segment*>[]>(max_segments)),
      failures_(std::make_unique<Error[]>(max_segments)) {}

SegmentMap::~SegmentMap() {
  for (std::uint32_t i = 0; i < max_segments_; ++i) delete slots_[i].load();
}

bool SegmentMap::map_one(std::uint32_t index) noexcept {
  try {
    auto opened = open_segment(segments_, plan_, index, writable_);
    if (!opened) {
      failures_[index] = std::move(opened).error();
      return false;
    }
    slots_[index].store(new Segment(std::move(*opened)), std::memory_order_release);
    failures_[index] = Error{};
    return true;
  } catch (const std::bad_alloc&) {
    failures_[index].code = Errc::no_memory;
    return false;
  }
}

std::uint32_t SegmentMap::map_up_to(std::uint32_t count) noexcept {
  const std::lock_guard lock(mapping_mutex_);
  std::uint32_t failed = 0;
  count = std::min(count, max_segments_);
  for (std::uint32_t index = count_.load(std::memory_order_relaxed); index < count; ++index) {
    if (!map_one(index)) ++failed;
    count_.store(index + 1, std::memory_order_release);
  }
  return failed;
}

void SegmentMap::retry_failed() noexcept {
  const std::lock_guard lock(mapping_mutex_);
  for (std::uint32_t index = 0; index < count(); ++index) {
    if (slots_[index].load(std::memory_order_relaxed) == nullptr) map_one(index);
  }
}

Error SegmentMap::failure(std::uint32_t index) const {
  const std::lock_guard lock(mapping_mutex_);
  return index < max_segments_ ? failures_[index] : Error{};
}

void SegmentMap::abandon() noexcept {
  for (std::uint32_t i = 0; i < max_segments_; ++i) {
    if (Segment* segment = slots_[i].load()) segment->mapping.abandon();
  }
}

}  // namespace esker::detail
