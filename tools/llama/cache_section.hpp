#pragma once

#include <cstdint>
#include <vector>

#include "llama/cells.hpp"
#include "llama/field_reader.hpp"

namespace esker::cli::llama {

/// Where the rows of one layer and plane stand in a file.
struct PlanePlace {
  std::uint64_t offset = 0;
  std::uint32_t row_bytes = 0;
  std::uint32_t element_bytes = 0;  ///< stored channel by channel when not 0
};

/// What a file says about its K and V, and where they are.
struct CacheSection {
  bool values_transposed = false;
  std::uint32_t key_type = 0;
  std::uint32_t value_type = 0;
  std::uint32_t key_rotation = 0;
  std::uint32_t value_rotation = 0;
  std::vector<PlanePlace> keys;
  std::vector<PlanePlace> values;  ///< empty for models that keep K only
  std::uint64_t keys_end = 0;      ///< 0 until all K planes are read
};

/// Reads the headers of all planes and steps over their rows, which must fit into the file. What is
/// wrong stands in the reader.
[[nodiscard]] CacheSection read_cache(FieldReader& in, std::uint32_t version, const Cells& cells);

}  // namespace esker::cli::llama
