#include "llama/cache_section.hpp"

#include <fmt/format.h>

#include <bit>

#include "llama/layout.hpp"
#include "llama/other_sections.hpp"

namespace esker::cli::llama {

namespace {

/// Reads the type of a plane. `all` is the type of the layers before it.
const ElementType* read_type(FieldReader& in, std::uint32_t layer, Plane plane,
                             std::uint32_t& all) {
  const char* letter = plane == Plane::key ? "K" : "V";
  const std::string field = fmt::format("type of {} in layer {}", letter, layer);
  const std::uint32_t id = in.u32(field);
  if (!in.ok()) return nullptr;
  const ElementType* type = find_element_type(id);
  if (type == nullptr) {
    in.reject(field, id, fmt::format("one of {}", element_type_names()));
  } else if (layer > 0 && id != all) {
    in.reject(field, type->name, "the same type as in the layers before");
  }
  all = id;
  return in.ok() ? type : nullptr;
}

void check_row(FieldReader& in, std::string_view field, std::uint64_t bytes,
               const ElementType& type) {
  const bool fits = bytes > 0 && bytes <= Geometry::max_row_bytes && bytes % type.block_bytes == 0;
  if (!in.ok() || fits) return;
  in.reject(field, bytes,
            fmt::format("a multiple of {} from {} to {}, since the type is {}", type.block_bytes,
                        type.block_bytes, Geometry::max_row_bytes, type.name));
}

PlanePlace read_rows(FieldReader& in, std::string_view field, const ElementType& type,
                     std::uint32_t cells) {
  const std::uint64_t row_bytes = in.u64(field);
  check_row(in, field, row_bytes, type);
  if (!in.ok()) return {};
  const PlanePlace place{in.offset(), static_cast<std::uint32_t>(row_bytes), 0};
  in.skip(cells, row_bytes, field);
  return place;
}

PlanePlace read_channels(FieldReader& in, std::string_view field, const ElementType& type,
                         std::uint32_t cells) {
  const std::uint32_t element_bytes = in.u32("el_size");
  if (in.ok() && (type.block_elements != 1 || element_bytes != type.block_bytes)) {
    in.reject(
        "el_size", element_bytes,
        fmt::format("{} for {}, which must not be quantised when V is stored channel by channel",
                    type.block_bytes, type.name));
  }
  const std::uint64_t channels = in.u32("n_embd_v_gqa");
  check_row(in, field, channels * element_bytes, type);
  if (!in.ok()) return {};
  const auto row_bytes = static_cast<std::uint32_t>(channels * element_bytes);
  const PlanePlace place{in.offset(), row_bytes, element_bytes};
  in.skip(cells, row_bytes, field);
  return place;
}

void read_keys(FieldReader& in, CacheSection& section, std::uint32_t layers, std::uint32_t cells) {
  for (std::uint32_t layer = 0; layer < layers && in.ok(); ++layer) {
    const ElementType* type = read_type(in, layer, Plane::key, section.key_type);
    if (type == nullptr) return;
    const std::string field = fmt::format("row size of K in layer {}", layer);
    section.keys.push_back(read_rows(in, field, *type, cells));
  }
}

void read_values(FieldReader& in, CacheSection& section, std::uint32_t cells) {
  const auto layers = static_cast<std::uint32_t>(section.keys.size());
  for (std::uint32_t layer = 0; layer < layers && in.ok(); ++layer) {
    const ElementType* type = read_type(in, layer, Plane::value, section.value_type);
    if (type == nullptr) return;
    const std::string field = fmt::format("row size of V in layer {}", layer);
    section.values.push_back(section.values_transposed ? read_channels(in, field, *type, cells)
                                                       : read_rows(in, field, *type, cells));
  }
}

std::uint32_t read_rotation(FieldReader& in, std::string_view field) {
  const std::uint32_t size = in.u32(field);
  if (in.ok() && size != 0 && !std::has_single_bit(size)) {
    in.reject(field, size, "0 or a power of two");
  }
  return size;
}

}  // namespace

CacheSection read_cache(FieldReader& in, std::uint32_t version, const Cells& cells) {
  const auto rows = static_cast<std::uint32_t>(cells.row_of_position.size());
  CacheSection section;
  const std::uint32_t transposed = in.u32("v_trans");
  if (in.ok() && transposed > 1) in.reject("v_trans", transposed, "0 or 1");
  section.values_transposed = transposed == 1;
  const std::uint32_t layers = in.u32("n_layer");
  if (in.ok() && (layers == 0 || layers > Geometry::max_layers)) {
    in.reject("n_layer", layers, fmt::format("1…{}", Geometry::max_layers));
  }
  if (version >= rotation_version) {
    section.key_rotation = read_rotation(in, "rot_k");
    section.value_rotation = read_rotation(in, "rot_v");
  }
  if (!in.ok()) return section;
  read_keys(in, section, layers, rows);
  if (!in.ok()) return section;
  section.keys_end = in.offset();
  if (!cache_ends_at(in, in.offset(), cells.streams_after)) read_values(in, section, rows);
  return section;
}

}  // namespace esker::cli::llama
