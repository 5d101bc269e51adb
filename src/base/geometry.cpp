#include <array>
#include <esker/geometry.hpp>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace esker {

namespace {

using detail::fail;

struct DTypeSize {
  std::string_view name;
  std::uint32_t elements;
  std::uint32_t bytes;
};

// Quantised types as in ggml: so many elements share a scale.
constexpr std::array<DTypeSize, 8> dtype_sizes{{{"f32", 1, 4},
                                                {"f16", 1, 2},
                                                {"bf16", 1, 2},
                                                {"f8_e4m3", 1, 1},
                                                {"f8_e5m2", 1, 1},
                                                {"i8", 1, 1},
                                                {"q8_0", 32, 34},
                                                {"q4_0", 32, 18}}};

Result<std::uint32_t> row_bytes_of(std::uint64_t elements, std::string_view dtype) {
  for (const DTypeSize& size : dtype_sizes) {
    if (size.name != dtype) continue;
    if (elements % size.elements != 0) {
      return fail(Errc::invalid, "kv_heads × head_dim is " + std::to_string(elements) +
                                     ", not a multiple of the " + std::to_string(size.elements) +
                                     " elements that " + std::string(dtype) + " packs together");
    }
    const std::uint64_t bytes = elements / size.elements * size.bytes;
    if (bytes == 0 || bytes > Geometry::max_row_bytes) {
      return fail(Errc::invalid, "a row of " + std::to_string(elements) + " elements has " +
                                     std::to_string(bytes) + " bytes, allowed is 1…" +
                                     std::to_string(Geometry::max_row_bytes));
    }
    return static_cast<std::uint32_t>(bytes);
  }
  std::string known;
  for (const DTypeSize& size : dtype_sizes)
    known.append(known.empty() ? "" : ", ").append(size.name);
  return fail(Errc::invalid, "dtype \"" + std::string(dtype) + "\" has no known size; known are " +
                                 known + " (or give the row bytes of each layer)");
}

std::string range_text(std::string_view field, std::uint64_t found, std::uint64_t max) {
  return std::string(field) + " is " + std::to_string(found) + ", allowed is 1…" +
         std::to_string(max);
}

}  // namespace

Result<Geometry> Geometry::uniform(std::uint32_t layers, std::uint32_t kv_heads,
                                   std::uint32_t head_dim, std::string_view dtype,
                                   std::uint32_t block_tokens) {
  if (layers == 0 || layers > max_layers) {
    return fail(Errc::invalid, range_text("layers", layers, max_layers));
  }
  auto row = row_bytes_of(std::uint64_t{kv_heads} * head_dim, dtype);
  if (!row) return tl::make_unexpected(std::move(row).error());
  Geometry geometry;
  geometry.layers.assign(layers, LayerRows{*row, *row});
  geometry.dtype = dtype;
  geometry.block_tokens = block_tokens;
  if (auto valid = geometry.validate(); !valid) {
    return tl::make_unexpected(std::move(valid).error());
  }
  return geometry;
}

Result<void> Geometry::validate() const {
  if (layers.empty() || layers.size() > max_layers) {
    return fail(Errc::invalid, range_text("layers", layers.size(), max_layers));
  }
  if (block_tokens == 0 || block_tokens > max_block_tokens) {
    return fail(Errc::invalid, range_text("block_tokens", block_tokens, max_block_tokens));
  }
  if (dtype.empty() || dtype.size() > max_dtype_bytes) {
    return fail(Errc::invalid, range_text("the length of dtype", dtype.size(), max_dtype_bytes));
  }
  for (const char letter : dtype) {
    if (letter <= ' ' || letter > '~') {
      return fail(Errc::invalid, "dtype holds a character outside printable ASCII");
    }
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerRows& rows = layers[i];
    const std::uint32_t larger = std::max(rows.key_row_bytes, rows.value_row_bytes);
    if (larger == 0 || larger > max_row_bytes) {
      return fail(Errc::invalid,
                  range_text("the larger row of layer " + std::to_string(i) + " (bytes)", larger,
                             max_row_bytes));
    }
  }
  return {};
}

std::uint32_t Geometry::row_bytes(std::uint32_t layer, Plane plane) const noexcept {
  if (layer >= layers.size()) return 0;
  return plane == Plane::key ? layers[layer].key_row_bytes : layers[layer].value_row_bytes;
}

std::uint64_t Geometry::token_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const LayerRows& rows : layers) {
    sum += std::uint64_t{rows.key_row_bytes} + rows.value_row_bytes;
  }
  return sum;
}

std::uint64_t Geometry::block_bytes() const noexcept { return token_bytes() * block_tokens; }

std::string Geometry::row_difference(const Geometry& other) const {
  if (layers.size() != other.layers.size()) {
    return "layers: " + std::to_string(layers.size()) + " and " +
           std::to_string(other.layers.size());
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] == other.layers[i]) continue;
    auto rows = [](const LayerRows& r) {
      return "K " + std::to_string(r.key_row_bytes) + " V " + std::to_string(r.value_row_bytes);
    };
    return "row bytes of layer " + std::to_string(i) + ": " + rows(layers[i]) + " and " +
           rows(other.layers[i]);
  }
  if (dtype != other.dtype) return "dtype: " + dtype + " and " + other.dtype;
  return {};
}

std::string Geometry::difference(const Geometry& other) const {
  if (std::string rows = row_difference(other); !rows.empty()) return rows;
  if (block_tokens != other.block_tokens) {
    return "block_tokens: " + std::to_string(block_tokens) + " and " +
           std::to_string(other.block_tokens);
  }
  return {};
}

}  // namespace esker
