#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace esker::detail {

/// Row table and model id stand behind the 256 bytes of a superblock slot's header, and of a cache
/// file's: per layer u32 K row bytes and u32 V row bytes, then the model id's text.
inline constexpr std::size_t shape_table_offset = 256;

/// What the header says of them.
struct ShapeFields {
  std::uint32_t layers = 0;
  std::uint32_t block_tokens = 0;
  std::uint32_t model_id_bytes = 0;
  std::span<const char> dtype;  ///< zero padded
};

struct Shape {
  Geometry geometry;
  ModelId model;
  std::size_t end = 0;  ///< offset behind the model id
};

/// A field that cannot be; the reader says of which file, and what to do.
struct ShapeProblem {
  std::string_view field;
  std::string found;
  std::string expected;
};

/// `file` is all that lies before the checksum. Every length is compared before it is used.
[[nodiscard]] tl::expected<Shape, ShapeProblem> read_shape(const ShapeFields& fields,
                                                           std::span<const std::byte> file);

/// Puts both in place; `model` is the id's text, and there is room for all of it.
void write_shape(const Geometry& geometry, std::string_view model, std::span<std::byte> file);

}  // namespace esker::detail
