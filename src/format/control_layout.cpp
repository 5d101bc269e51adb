#include "format/control_layout.hpp"

#include "base/bytes.hpp"

namespace esker::detail {

namespace {
constexpr std::uint64_t page_bytes = 4096;
}

ControlLayout::ControlLayout(std::uint32_t max_blocks_, std::uint32_t segment_blocks_,
                             std::uint32_t seats_)
    : seats(seats_), max_blocks(max_blocks_), segment_blocks(segment_blocks_) {
  // A block leaves at most four hints (its own length and three parts): load 0.4 of 16 a bucket.
  buckets = static_cast<std::uint32_t>(div_ceil(std::uint64_t{max_blocks} * 5, 8));
  row_bytes = static_cast<std::uint32_t>(align_up(div_ceil(max_blocks, 8), 64));
  std::uint64_t end = page_bytes;
  const auto area = [&end](std::uint64_t bytes) {
    const std::uint64_t begin = end;
    end = align_up(begin + bytes, page_bytes);
    return begin;
  };
  slots_offset = area(std::uint64_t{seats} * sizeof(SeatRecord));
  words_offset = area(std::uint64_t{max_blocks} * 8);
  checks_offset = area(std::uint64_t{max_blocks} * 8);
  touches_offset = area(std::uint64_t{max_blocks} * 8);
  rows_offset = area(std::uint64_t{seats} * row_bytes);
  hints_offset = area(std::uint64_t{buckets} * hints_per_bucket * 8);
  events_offset = area(std::uint64_t{event_ring_entries} * sizeof(EventRecord));
  file_bytes = end;
}

}  // namespace esker::detail
