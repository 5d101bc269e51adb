#include "plane_type.hpp"

#include <array>

namespace esker::cli {

namespace {

struct NamedType {
  std::string_view dtype;
  PlaneType type;
};

constexpr PlaneType bytes_type{"|u1", "U8", 1};
constexpr std::array<NamedType, 3> named_types{{
    {"f32", {"<f4", "F32", 4}},
    {"f16", {"<f2", "F16", 2}},
    {"bf16", {"<u2", "BF16", 2}},
}};

}  // namespace

std::string plane_dtype(std::string_view dtype, Plane plane) {
  const std::string_view mark = plane == Plane::key ? "k:" : "v:";
  if (!dtype.starts_with("k:")) return std::string(dtype);
  const std::size_t comma = dtype.find(',');
  for (const std::string_view part :
       {dtype.substr(0, comma), comma == dtype.npos ? "" : dtype.substr(comma + 1)}) {
    if (part.starts_with(mark)) return std::string(part.substr(mark.size()));
  }
  return std::string(dtype);
}

PlaneType plane_type(const Geometry& geometry, std::uint32_t layer, Plane plane) {
  const std::string dtype = plane_dtype(geometry.dtype, plane);
  for (const NamedType& known : named_types) {
    // A dtype is free text: the size of the rows must agree with it.
    const bool fits = geometry.row_bytes(layer, plane) % known.type.element_bytes == 0;
    if (known.dtype == dtype && fits) return known.type;
  }
  return bytes_type;
}

}  // namespace esker::cli
