#include "llama/layout.hpp"

#include <array>

namespace esker::cli::llama {

namespace {

constexpr std::array<ElementType, 9> element_types{{
    {0, "f32", 1, 4},
    {1, "f16", 1, 2},
    {2, "q4_0", 32, 18},
    {3, "q4_1", 32, 20},
    {6, "q5_0", 32, 22},
    {7, "q5_1", 32, 24},
    {8, "q8_0", 32, 34},
    {20, "iq4_nl", 32, 18},
    {30, "bf16", 1, 2},
}};

std::string type_name(std::uint32_t id) {
  const ElementType* type = find_element_type(id);
  return type != nullptr ? std::string(type->name) : "ggml" + std::to_string(id);
}

}  // namespace

const ElementType* find_element_type(std::uint32_t id) noexcept {
  for (const ElementType& type : element_types) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

std::string element_type_names() {
  std::string names;
  for (const ElementType& type : element_types) {
    if (!names.empty()) names += ", ";
    names += std::string(type.name) + " (" + std::to_string(type.id) + ")";
  }
  return names;
}

bool SeqLayout::has_values() const noexcept {
  return !layers.empty() && layers.front().value_row_bytes > 0;
}

std::string SeqLayout::dtype() const {
  if (!has_values() || key_type == value_type) return type_name(key_type);
  return "k:" + type_name(key_type) + ",v:" + type_name(value_type);
}

Geometry SeqLayout::geometry(std::uint32_t block_tokens) const {
  Geometry geometry;
  geometry.layers = layers;
  geometry.dtype = dtype();
  geometry.block_tokens = block_tokens;
  return geometry;
}

std::uint32_t SeqLayout::row_bytes(std::uint32_t layer, Plane plane) const noexcept {
  if (layer >= layers.size()) return 0;
  return plane == Plane::key ? layers[layer].key_row_bytes : layers[layer].value_row_bytes;
}

std::uint64_t SeqLayout::file_bytes(std::uint64_t tokens) const noexcept {
  const std::uint64_t words = tokens + (payload == TokenPayload::packed ? 4 : 0);
  std::uint64_t bytes = header_bytes + 4 * words;
  if (container == Container::session) bytes += 4 + architecture.size();
  bytes += 4 + std::uint64_t{4} * streams + cell_bytes * tokens;
  bytes += version >= rotation_version ? 16 : 8;
  for (const LayerRows& rows : layers) {
    bytes += 12 + rows.key_row_bytes * tokens;
    if (rows.value_row_bytes > 0) bytes += 12 + rows.value_row_bytes * tokens;
  }
  return bytes;
}

}  // namespace esker::cli::llama
