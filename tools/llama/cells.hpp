#pragma once

#include <cstdint>
#include <vector>

#include "llama/field_reader.hpp"
#include "llama/layout.hpp"

namespace esker::cli::llama {

/// Where each position's rows stand among the rows of a file.
struct Cells {
  std::uint32_t streams = 0;
  std::vector<std::uint32_t> row_of_position;
  std::uint64_t first_cell_offset = 0;  ///< in the one stream that has any
  std::uint32_t streams_after = 0;      ///< behind that stream and its rows
  std::int32_t sequence = 0;            ///< that the first cell belongs to
};

/// Reads the number of streams and the first one that has cells, up to where its rows begin. The
/// positions must be 0…n-1 in any order, and all cells of a session of one sequence. What is wrong
/// stands in the reader.
[[nodiscard]] Cells read_cells(FieldReader& in, Container container);

/// Reads the streams behind the rows, which must be empty.
void read_streams_after(FieldReader& in, Container container, const Cells& cells);

}  // namespace esker::cli::llama
