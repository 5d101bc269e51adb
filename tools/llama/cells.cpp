#include "llama/cells.hpp"

#include <fmt/format.h>

#include "llama/layout.hpp"

namespace esker::cli::llama {

namespace {

constexpr std::uint32_t no_row = UINT32_MAX;

void refuse_several(FieldReader& in, std::string_view what) {
  in.refuse(
      Errc::incompatible,
      fmt::format("{}: a session with several sequences cannot be kept as one text. Save each "
                  "sequence by itself (llama_state_seq_save_file)",
                  what));
}

/// Whom a cell belongs to. llama.cpp discards the number itself, which is the slot that saved it.
void read_owner(FieldReader& in, Container container, Cells& cells, std::uint32_t row) {
  const std::uint32_t sequences = in.u32("n_seq_id");
  if (in.ok() && container == Container::session && sequences > 1) {
    refuse_several(in, fmt::format("cell {} belongs to {} sequences", row, sequences));
  } else if (in.ok() && sequences != 1) {
    in.reject(fmt::format("n_seq_id of cell {}", row), sequences,
              "1, as in a file of one sequence");
  }
  const std::int32_t sequence = in.i32("seq_id");
  if (row == 0) cells.sequence = sequence;
  if (in.ok() && container == Container::session && sequence != cells.sequence) {
    refuse_several(in, fmt::format("cell {} belongs to sequence {}, cell 0 to sequence {}", row,
                                   sequence, cells.sequence));
  }
}

void place_cell(FieldReader& in, Container container, Cells& cells, std::uint32_t row) {
  auto& rows = cells.row_of_position;
  const std::uint64_t start = in.offset();
  in.skip(1, 4, "cell position");
  read_owner(in, container, cells, row);
  const std::uint64_t end = in.offset();
  if (!in.ok()) return;
  in.seek(start);
  const std::int32_t position = in.i32("cell position");
  if (in.ok() && (position < 0 || static_cast<std::size_t>(position) >= rows.size())) {
    in.reject(fmt::format("position of cell {}", row), std::to_string(position),
              fmt::format("0…{}, each once: a shifted or thinned-out context cannot be shared",
                          rows.size() - 1));
  }
  if (!in.ok()) return;
  std::uint32_t& place = rows[static_cast<std::size_t>(position)];
  if (place != no_row) {
    in.reject(fmt::format("position of cell {}", row), std::to_string(position),
              fmt::format("another one: cell {} has it already", place));
    return;
  }
  place = row;
  in.seek(end);
}

void read_rows(FieldReader& in, Container container, Cells& cells, std::uint32_t count) {
  cells.first_cell_offset = in.offset();
  in.skip(count, cell_bytes, "cells");  // proves that they fit before anything is allocated
  if (!in.ok()) return;
  in.seek(cells.first_cell_offset);
  cells.row_of_position.assign(count, no_row);
  for (std::uint32_t row = 0; row < count && in.ok(); ++row) {
    place_cell(in, container, cells, row);
  }
}

}  // namespace

Cells read_cells(FieldReader& in, Container container) {
  Cells cells;
  cells.streams = in.u32("n_stream");
  if (in.ok() && (cells.streams == 0 || cells.streams > max_streams)) {
    in.reject("n_stream", cells.streams, fmt::format("1…{}", max_streams));
  }
  for (std::uint32_t stream = 0; stream < cells.streams && in.ok(); ++stream) {
    const std::uint32_t count = in.u32("cell_count");
    if (!in.ok() || count == 0) continue;
    cells.streams_after = cells.streams - stream - 1;
    read_rows(in, container, cells, count);
    break;
  }
  return cells;
}

void read_streams_after(FieldReader& in, Container container, const Cells& cells) {
  for (std::uint32_t i = 0; i < cells.streams_after && in.ok(); ++i) {
    const std::uint32_t count = in.u32("cell_count");
    if (!in.ok() || count == 0) continue;
    const std::uint32_t stream = cells.streams - cells.streams_after + i;
    if (container == Container::session) {
      refuse_several(in, fmt::format("streams {} and {} both hold cells",
                                     cells.streams - cells.streams_after - 1, stream));
      return;
    }
    in.reject(fmt::format("cell_count of stream {}", stream), count,
              "0: another stream holds the sequence already");
  }
}

}  // namespace esker::cli::llama
