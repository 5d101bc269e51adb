#include <algorithm>

#include "codec/filters.hpp"

namespace esker::detail {

namespace {

/// Longer elements are structures, whose places are many and have few bytes each.
constexpr std::size_t widest_number = 8;

unsigned packed_width(Filter filter) noexcept { return filter == Filter::packed_3 ? 3 : 4; }

bool is_packed(Filter filter) noexcept {
  return filter == Filter::packed_3 || filter == Filter::packed_4;
}

std::size_t channels(const RowShape& shape) noexcept {
  return shape.row_bytes / shape.element_bytes;
}

void end_planes(Filtered& out, std::size_t head_bytes, std::size_t element_bytes,
                std::size_t elements) noexcept {
  out.head_bytes = head_bytes;
  if (element_bytes > widest_number) return out.end_part(out.bytes.size());
  for (std::size_t plane = 1; plane <= element_bytes; ++plane) {
    out.end_part(head_bytes + plane * elements);
  }
}

/// Each plane by channels, from the planes in `work`.
void turn_planes(std::span<const std::byte> in, const RowShape& shape, bool back,
                 std::span<std::byte> out) noexcept {
  const std::size_t elements = in.size() / shape.element_bytes;
  const std::size_t width = channels(shape);
  const std::size_t tokens = elements / width;
  for (std::size_t plane = 0; plane < shape.element_bytes; ++plane) {
    transpose_bytes(in.subspan(plane * elements, elements), back ? width : tokens,
                    back ? tokens : width, out.subspan(plane * elements, elements));
  }
}

}  // namespace

bool filter_fits(Filter filter, const RowShape& shape) noexcept {
  const bool is_float = shape.exponent_bits != 0;
  switch (filter) {
    case Filter::none:
    case Filter::channel_planes:
    case Filter::previous_planes:
      return true;
    case Filter::planes:
      return shape.element_bytes > 1;
    case Filter::centred_planes:
    case Filter::packed_3:
    case Filter::packed_4:
      return is_float;
  }
  return false;
}

FilteredRange filtered_range(Filter filter, const RowShape& shape,
                             std::size_t rows_bytes) noexcept {
  if (is_packed(filter)) {
    const std::size_t fixed = packed_fixed_bytes(shape, rows_bytes, packed_width(filter));
    return {fixed, fixed + rows_bytes / shape.element_bytes};
  }
  const std::size_t exact =
      filter == Filter::centred_planes ? rows_bytes + shape.row_bytes : rows_bytes;
  return {exact, exact};
}

void apply_filter(Filter filter, std::span<const std::byte> rows, const RowShape& shape,
                  std::vector<std::byte>& work, Filtered& out) {
  const std::size_t elements = rows.size() / shape.element_bytes;
  if (is_packed(filter)) return packed_apply(rows, shape, packed_width(filter), work, out);
  out.bytes.resize(filtered_range(filter, shape, rows.size()).most);
  switch (filter) {
    case Filter::planes:
      planes_apply(rows, shape.element_bytes, out.bytes);
      break;
    case Filter::channel_planes:
      work.resize(rows.size());
      planes_apply(rows, shape.element_bytes, work);
      turn_planes(work, shape, false, out.bytes);
      break;
    case Filter::previous_planes:
      work.resize(rows.size());
      previous_apply(rows, shape.row_bytes, work);
      planes_apply(work, shape.element_bytes, out.bytes);
      break;
    case Filter::centred_planes:
      centred_apply(rows, shape, out.bytes);
      return end_planes(out, shape.row_bytes, shape.element_bytes, elements);
    default:
      std::copy(rows.begin(), rows.end(), out.bytes.begin());
      return out.end_part(rows.size());
  }
  end_planes(out, 0, shape.element_bytes, elements);
}

bool undo_filter(Filter filter, std::span<const std::byte> in, const RowShape& shape,
                 std::vector<std::byte>& work, std::span<std::byte> rows) {
  const FilteredRange range = filtered_range(filter, shape, rows.size());
  if (in.size() < range.least || in.size() > range.most) return false;
  switch (filter) {
    case Filter::none:
      std::copy(in.begin(), in.end(), rows.begin());
      return true;
    case Filter::planes:
      planes_undo(in, shape.element_bytes, rows);
      return true;
    case Filter::channel_planes:
      work.resize(rows.size());
      turn_planes(in, shape, true, work);
      planes_undo(work, shape.element_bytes, rows);
      return true;
    case Filter::previous_planes:
      planes_undo(in, shape.element_bytes, rows);
      previous_undo(rows, shape.row_bytes);
      return true;
    case Filter::centred_planes:
      centred_undo(in, shape, rows);
      return true;
    case Filter::packed_3:
    case Filter::packed_4:
      return packed_undo(in, shape, packed_width(filter), work, rows);
  }
  return false;
}

}  // namespace esker::detail
