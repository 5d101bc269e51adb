#include "llama/rotation.hpp"

#include <fmt/format.h>

namespace esker::cli::llama {

namespace {

bool quantised(std::uint32_t type) {
  const ElementType* known = find_element_type(type);
  return known != nullptr && known->block_elements > 1;
}

std::string_view stored_rotation(const ModelId& model, std::string_view key) {
  const std::string_view value = model.get(key);
  return value.empty() ? "0" : value;
}

std::string difference(const SeqLayout& layout, const ModelId& model, Plane plane) {
  const bool key = plane == Plane::key;
  const std::string_view name = key ? key_rotation_key : value_rotation_key;
  const std::string_view stored = stored_rotation(model, name);
  const bool recorded = layout.version >= rotation_version;
  if (!recorded && quantised(key ? layout.key_type : layout.value_type) && stored != "0") {
    return fmt::format(
        "{}: the file's version {} does not record it, the store has {}: use a file of "
        "version {} or newer",
        name, layout.version, stored, rotation_version);
  }
  const std::string found = std::to_string(key ? layout.key_rotation : layout.value_rotation);
  if (found == stored) return {};
  return fmt::format(
      "{}: the file has {}, the store {}: they need stores of their own (esker create "
      "--like FILE sets it)",
      name, found, stored);
}

}  // namespace

Result<void> add_rotation(const SeqLayout& layout, ModelId& model) {
  if (layout.key_rotation != 0) {
    const auto set = model.set(key_rotation_key, std::to_string(layout.key_rotation));
    if (!set) return set;
  }
  if (layout.value_rotation != 0) {
    return model.set(value_rotation_key, std::to_string(layout.value_rotation));
  }
  return {};
}

std::string rotation_difference(const SeqLayout& layout, const ModelId& model) {
  std::string text = difference(layout, model, Plane::key);
  if (text.empty() && layout.has_values()) text = difference(layout, model, Plane::value);
  return text;
}

ModelId without_rotation(const ModelId& model) {
  ModelId rest;
  for (const auto& [key, value] : model.entries()) {
    if (key == key_rotation_key || key == value_rotation_key) continue;
    (void)rest.set(key, value);  // it was valid in `model`
  }
  return rest;
}

}  // namespace esker::cli::llama
