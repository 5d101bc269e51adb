#pragma once

#include <cstdint>
#include <esker/options.hpp>
#include <esker/result.hpp>

#include "format/segment_layout.hpp"
#include "region/directory.hpp"
#include "region/file.hpp"
#include "region/mapping.hpp"

namespace esker::detail {

/// One segment file, opened, checked against the computed layout and mapped for reading.
struct Segment {
  File file;
  Mapping mapping;
  dev_t device = 0;
  ino_t inode = 0;
};

/// What all segments of a store have in common.
struct SegmentPlan {
  SegmentLayout layout;
  SegmentIdentity identity;
  Sharing sharing = Sharing::owner;
};

/// Opens segment `index`; `writable` opens O_RDWR, which also detaches from overlay lower layers.
[[nodiscard]] Result<Segment> open_segment(const Directory& segments, const SegmentPlan& plan,
                                           std::uint32_t index, bool writable);

/// Builds segment `index` under a temporary name and gives it its name when it is complete. An
/// existing file of that name stays as it is. Leaves nothing behind on failure.
[[nodiscard]] Result<void> build_segment(const Directory& segments, const SegmentPlan& plan,
                                         std::uint32_t index);

}  // namespace esker::detail
