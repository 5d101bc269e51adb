#include "format/shape_table.hpp"

#include <array>
#include <cstring>

namespace esker::detail {

tl::expected<Shape, ShapeProblem> read_shape(const ShapeFields& fields,
                                             std::span<const std::byte> file) {
  const auto bad = [](std::string_view field, std::string found, std::string expected) {
    return tl::make_unexpected(ShapeProblem{field, std::move(found), std::move(expected)});
  };
  if (fields.layers == 0 || fields.layers > Geometry::max_layers) {
    return bad("layers", std::to_string(fields.layers),
               "1…" + std::to_string(Geometry::max_layers));
  }
  const std::size_t model_offset = shape_table_offset + std::size_t{8} * fields.layers;
  if (fields.model_id_bytes > ModelId::max_text_bytes ||
      model_offset + fields.model_id_bytes > file.size()) {
    return bad("model_id_bytes", std::to_string(fields.model_id_bytes),
               "at most " + std::to_string(ModelId::max_text_bytes));
  }
  Shape shape;
  shape.geometry.layers.resize(fields.layers);
  for (std::size_t i = 0; i < fields.layers; ++i) {
    std::array<std::uint32_t, 2> rows{};
    std::memcpy(rows.data(), file.data() + shape_table_offset + 8 * i, sizeof rows);
    shape.geometry.layers[i] = LayerRows{rows[0], rows[1]};
  }
  shape.geometry.dtype.assign(fields.dtype.data(),
                              strnlen(fields.dtype.data(), fields.dtype.size()));
  shape.geometry.block_tokens = fields.block_tokens;
  if (auto valid = shape.geometry.validate(); !valid) {
    return bad("geometry", valid.error().message, "a valid one");
  }
  const char* text = reinterpret_cast<const char*>(file.data() + model_offset);
  auto model = ModelId::parse(std::string_view(text, fields.model_id_bytes));
  if (!model) return bad("model id", model.error().message, "sorted key=value lines");
  shape.model = std::move(*model);
  shape.end = model_offset + fields.model_id_bytes;
  return shape;
}

void write_shape(const Geometry& geometry, std::string_view model, std::span<std::byte> file) {
  std::size_t offset = shape_table_offset;
  for (const LayerRows& rows : geometry.layers) {
    const std::array<std::uint32_t, 2> entry{rows.key_row_bytes, rows.value_row_bytes};
    std::memcpy(file.data() + offset, entry.data(), sizeof entry);
    offset += sizeof entry;
  }
  std::memcpy(file.data() + offset, model.data(), model.size());
}

}  // namespace esker::detail
