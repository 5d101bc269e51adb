#include "codec/codec.hpp"

namespace esker::detail {

namespace {

struct Element {
  std::string_view dtype;
  std::uint16_t bytes;
  std::uint8_t exponent_bits;
};

constexpr std::array<Element, 5> elements{
    {{"f32", 4, 8}, {"f16", 2, 5}, {"bf16", 2, 8}, {"q8_0", 34, 0}, {"q4_0", 18, 0}}};

}  // namespace

RowShape RowShape::of(std::string_view dtype, Plane plane, std::uint32_t row_bytes) {
  RowShape shape;
  shape.row_bytes = row_bytes;
  shape.plane = plane;
  for (const Element& element : elements) {
    if (element.dtype != dtype || row_bytes % element.bytes != 0) continue;
    shape.element_bytes = element.bytes;
    shape.exponent_bits = element.exponent_bits;
  }
  return shape;
}

}  // namespace esker::detail
