#pragma once

#include <esker/geometry.hpp>
#include <vector>

#include "codec/codec.hpp"

namespace esker::detail {

/// The planes of a geometry as snapshots number them: layer 0 K, layer 0 V, layer 1 K…; those
/// without rows are left out.
[[nodiscard]] inline std::vector<RowShape> plane_shapes(const Geometry& geometry) {
  std::vector<RowShape> planes;
  for (std::uint32_t layer = 0; layer < geometry.layers.size(); ++layer) {
    for (const Plane plane : {Plane::key, Plane::value}) {
      const std::uint32_t row_bytes = geometry.row_bytes(layer, plane);
      if (row_bytes != 0) planes.push_back(RowShape::of(geometry.dtype, plane, row_bytes));
    }
  }
  return planes;
}

}  // namespace esker::detail
