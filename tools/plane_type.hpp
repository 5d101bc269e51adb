#pragma once

#include <cstdint>
#include <esker/geometry.hpp>
#include <string>
#include <string_view>

namespace esker::cli {

/// How the elements of a row are called elsewhere. What no other program has a type for is bytes.
struct PlaneType {
  std::string_view numpy;   ///< such as "<f2"; bf16 is "<u2", since numpy has no such type
  std::string_view tensor;  ///< of safetensors: "F16"
  std::uint32_t element_bytes = 1;
};

/// The type of one plane: of a geometry's "k:f16,v:q8_0" or, for both planes, "f16".
[[nodiscard]] std::string plane_dtype(std::string_view dtype, Plane plane);

[[nodiscard]] PlaneType plane_type(const Geometry& geometry, std::uint32_t layer, Plane plane);

}  // namespace esker::cli
