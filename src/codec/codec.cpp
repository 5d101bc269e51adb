#include "codec/codec.hpp"

#include <algorithm>

#include "codec/chunk_shape.hpp"
#include "codec/filters.hpp"
#include "codec/quantise.hpp"

namespace esker::detail {

void ErrorSums::add(const ErrorSums& other) noexcept {
  max_absolute = std::max(max_absolute, other.max_absolute);
  squared_error += other.squared_error;
  squared += other.squared;
  elements += other.elements;
}

bool known_coding(const ChunkCoding& coding, const RowShape& shape) noexcept {
  const RowShape usable = usable_shape(shape);
  if (coding.compression > static_cast<std::uint8_t>(Compression::zstd)) return false;
  if (coding.lossy > static_cast<std::uint8_t>(Lossy::q4)) return false;
  if (coding.lossy != 0) return coding.filter == 0 && can_quantise(usable);
  return coding.filter < filter_count && filter_fits(static_cast<Filter>(coding.filter), usable);
}

}  // namespace esker::detail
