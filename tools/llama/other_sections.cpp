#include "llama/other_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "llama/layout.hpp"

namespace esker::cli::llama {

namespace {

constexpr std::uint32_t checkpoint_version = 1;

constexpr std::string_view window_reason =
    "a second cache, as models with sliding-window attention have it. Its window only fits the end "
    "of this very text, so its tokens cannot be shared with other prompts: this kind of model is "
    "not "
    "supported";
constexpr std::string_view recurrent_reason =
    "the state of a recurrent or hybrid model. It only fits the end of this very text, so its "
    "tokens "
    "cannot be shared with other prompts: this kind of model is not supported";
constexpr std::string_view checkpoint_reason =
    "checkpoints ('SCKP'), as models with sliding-window attention or recurrent state need them. "
    "Their state only fits single positions of this very text, so its tokens cannot be shared with "
    "other prompts: this kind of model is not supported";
constexpr std::string_view extended_reason =
    "cells with three more words (24 bytes each), as models with M-RoPE or n-gram inputs have "
    "them: "
    "this kind of model is not supported";

/// The `N` words at `offset`, or nothing where the file is shorter.
template <std::size_t N>
std::optional<std::array<std::uint32_t, N>> words_at(const FieldReader& in, std::uint64_t offset) {
  std::array<std::uint32_t, N> words{};
  const std::uint64_t size = in.file().bytes();
  if (offset > size || size - offset < sizeof(words)) return std::nullopt;
  std::array<std::byte, sizeof(words)> bytes{};
  if (!in.file().read(offset, bytes)) return std::nullopt;
  std::memcpy(words.data(), bytes.data(), sizeof(words));
  return words;
}

bool is_position(std::uint32_t word) { return word <= static_cast<std::uint32_t>(INT32_MAX); }

/// cell_count, position, n_seq_id 0, s_trans 0, n_layer: no attention cache starts like this.
bool recurrent_at(const FieldReader& in, std::uint64_t offset) {
  const auto words = words_at<5>(in, offset);
  if (!words) return false;
  const auto [cells, position, sequences, transposed, layers] = *words;
  return cells == 1 && is_position(position) && sequences == 0 && transposed == 0 && layers > 0 &&
         layers <= Geometry::max_layers;
}

/// The same where a whole context was saved: there each cell tells its sequence. A type and the
/// size of a row follow, where the cells of an attention cache go on.
bool recurrent_context_at(const FieldReader& in, std::uint64_t offset) {
  const auto words = words_at<9>(in, offset);
  if (!words) return false;
  const auto [cells, position, sequences, sequence, transposed, layers, type, row, row_high] =
      *words;
  return cells == 1 && is_position(position) && sequences == 1 && is_position(sequence) &&
         transposed == 0 && layers > 0 && layers <= Geometry::max_layers &&
         find_element_type(type) != nullptr && row > 0 && row_high == 0;
}

/// n_stream, empty streams, cell_count, position, n_seq_id 1.
bool attention_at(const FieldReader& in, std::uint64_t offset) {
  const auto streams = words_at<1>(in, offset);
  if (!streams || (*streams)[0] == 0 || (*streams)[0] > max_streams) return false;
  for (std::uint32_t stream = 0; stream < (*streams)[0]; ++stream) {
    const auto words = words_at<3>(in, offset + 4 + std::uint64_t{4} * stream);
    if (!words) return false;
    const auto [cells, position, sequences] = *words;
    if (cells > 0) return is_position(position) && sequences == 1;
  }
  return false;
}

/// v_trans, n_layer, rotations, the first type and row size, all of them plausible.
bool cache_header_at(const FieldReader& in, std::uint64_t offset, std::uint32_t version) {
  const std::uint64_t type_offset = offset + (version >= rotation_version ? 16 : 8);
  const auto head = words_at<2>(in, offset);
  const auto plane = words_at<3>(in, type_offset);
  if (!head || !plane) return false;
  const ElementType* type = find_element_type((*plane)[0]);
  return (*head)[0] <= 1 && (*head)[1] > 0 && (*head)[1] <= Geometry::max_layers &&
         type != nullptr && (*plane)[1] > 0 && (*plane)[1] % type->block_bytes == 0 &&
         (*plane)[2] == 0;
}

bool extended_cells(const FieldReader& in, const Cells& cells, std::uint32_t version) {
  if (cells.row_of_position.empty()) return false;
  const std::uint64_t end =
      cells.first_cell_offset + cells.row_of_position.size() * extended_cell_bytes;
  return cache_header_at(in, end, version);
}

void refuse_kind(FieldReader& in, std::uint64_t offset, std::string_view reason) {
  in.forget_error();
  in.refuse(Errc::incompatible, fmt::format("at byte {} begins {}", offset, reason));
}

/// The four letters at `offset`, if a section with a magic begins there.
std::optional<std::string> section_magic_at(const FieldReader& in, std::uint64_t offset) {
  const auto word = words_at<1>(in, offset);
  if (!word) return std::nullopt;
  std::string letters;
  for (int shift = 24; shift >= 0; shift -= 8) {
    letters += static_cast<char>(((*word)[0] >> shift) & 0xFF);
  }
  const bool capitals = std::all_of(letters.begin(), letters.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  return capitals ? std::optional(letters) : std::nullopt;
}

}  // namespace

bool cache_ends_at(const FieldReader& in, std::uint64_t offset, std::uint32_t streams_after) {
  for (std::uint32_t stream = 0; stream < streams_after; ++stream, offset += 4) {
    const auto count = words_at<1>(in, offset);
    if (!count || (*count)[0] != 0) return false;
  }
  return offset == in.file().bytes() || section_magic_at(in, offset).has_value();
}

void check_tail(FieldReader& in, Container container) {
  const std::uint64_t offset = in.offset();
  if (!in.ok() || in.remaining() == 0) return;
  const auto magic = section_magic_at(in, offset);
  if (magic == "SCKP") {
    const auto words = words_at<3>(in, offset);
    const bool empty = container == Container::sequence && words &&
                       (*words)[1] == checkpoint_version && (*words)[2] == 0;
    if (!empty || in.remaining() != sizeof(*words)) refuse_kind(in, offset, checkpoint_reason);
    return;
  }
  if (magic) {
    in.refuse(Errc::incompatible,
              fmt::format("at byte {} begins a section '{}' that this esker does not know: it may "
                          "belong to the cache, so the file is refused",
                          offset, *magic));
    return;
  }
  const std::uint64_t extra = in.remaining();
  in.refuse(Errc::corrupt,
            fmt::format("{} bytes behind the end of the cache at byte {}: no section "
                        "that this esker knows. Save the file again",
                        extra, offset));
  explain_second_cache(in, offset);
}

void explain_failure(FieldReader& in, std::uint64_t memory_offset, const Cells& cells,
                     std::uint32_t version) {
  if (in.ok() || in.error().code != Errc::corrupt) return;
  if (recurrent_at(in, memory_offset) || recurrent_context_at(in, memory_offset)) {
    refuse_kind(in, memory_offset, recurrent_reason);
  } else if (extended_cells(in, cells, version)) {
    refuse_kind(in, cells.first_cell_offset, extended_reason);
  }
}

void explain_second_cache(FieldReader& in, std::uint64_t offset) {
  if (in.ok() || in.error().code != Errc::corrupt) return;
  if (recurrent_at(in, offset) || recurrent_context_at(in, offset)) {
    refuse_kind(in, offset, recurrent_reason);
  } else if (attention_at(in, offset)) {
    refuse_kind(in, offset, window_reason);
  }
}

}  // namespace esker::cli::llama
