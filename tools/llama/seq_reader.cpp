#include "llama/seq_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "llama/cells.hpp"
#include "llama/container.hpp"
#include "llama/field_reader.hpp"
#include "llama/other_sections.hpp"
#include "llama/token_payload.hpp"
#include "llama/transpose.hpp"

namespace esker::cli::llama {

namespace {

void check_counts(FieldReader& in, std::size_t tokens, std::size_t cells) {
  if (!in.ok()) return;
  if (tokens != cells) {
    in.refuse(Errc::corrupt,
              fmt::format("lists {} tokens, but holds cells for {}: expected as many "
                          "of both. Save it again",
                          tokens, cells));
  } else if (cells == 0) {
    in.refuse(Errc::invalid, "holds an empty sequence: no token, no layout");
  }
}

SeqLayout layout_of(const FileHead& head, const Cells& cells, TokenPayload payload,
                    const CacheSection& section) {
  SeqLayout layout;
  layout.container = head.container;
  layout.version = head.version;
  layout.streams = cells.streams;
  layout.payload = payload;
  layout.values_transposed = section.values_transposed;
  layout.key_type = section.key_type;
  layout.value_type = section.value_type;
  layout.key_rotation = section.key_rotation;
  layout.value_rotation = section.value_rotation;
  for (std::size_t i = 0; i < section.keys.size(); ++i) {
    const std::uint32_t value = section.values.empty() ? 0 : section.values[i].row_bytes;
    layout.layers.push_back({section.keys[i].row_bytes, value});
  }
  return layout;
}

}  // namespace

Result<SeqFile> SeqFile::open(const std::string& path) {
  auto file = InputFile::open(path);
  if (!file) return tl::unexpected(file.error());
  return parse(std::move(*file));
}

Result<SeqFile> SeqFile::parse(InputFile input) {
  SeqFile file(std::move(input));
  FieldReader in(file.file_);
  const FileHead head = read_head(in);
  TokenList list = read_tokens(in);
  std::string architecture;
  if (head.container == Container::session) architecture = read_architecture(in);
  if (!in.ok()) return tl::unexpected(in.error());

  const std::uint64_t memory_offset = in.offset();
  Cells cells = read_cells(in, head.container);
  check_counts(in, list.tokens.size(), cells.row_of_position.size());
  CacheSection section;
  if (in.ok()) {
    section = read_cache(in, head.version, cells);
    read_streams_after(in, head.container, cells);
    if (section.keys_end > 0) {
      explain_second_cache(in, section.keys_end + std::uint64_t{4} * cells.streams_after);
    }
    check_tail(in, head.container);
  }
  explain_failure(in, memory_offset, cells, head.version);
  if (!in.ok()) return tl::unexpected(in.error());

  file.layout_ = layout_of(head, cells, list.payload, section);
  file.layout_.architecture = std::move(architecture);
  file.tokens_ = std::move(list.tokens);
  file.row_of_position_ = std::move(cells.row_of_position);
  file.keys_ = std::move(section.keys);
  file.values_ = std::move(section.values);
  return file;
}

Result<void> SeqFile::rows(std::uint32_t layer, Plane plane, TokenRange range,
                           std::span<std::byte> out) const {
  const auto& planes = plane == Plane::key ? keys_ : values_;
  const auto fail = [this](std::string what) -> Result<void> {
    return tl::unexpected(Error{Errc::invalid, 0, name() + ": " + std::move(what)});
  };
  if (layer >= planes.size()) {
    return fail(fmt::format("layer {} asked for, {} there", layer, planes.size()));
  }
  if (range.begin > range.end || range.end > tokens_.size()) {
    return fail(
        fmt::format("tokens {}…{} asked for, {} there", range.begin, range.end, tokens_.size()));
  }
  const PlanePlace& place = planes[layer];
  if (out.size() != std::size_t{range.size()} * place.row_bytes) {
    return fail(fmt::format("room for {} bytes given, {} rows of {} bytes asked for", out.size(),
                            range.size(), place.row_bytes));
  }
  if (range.empty()) return {};
  return place.element_bytes == 0 ? read_packed(place, range, out)
                                  : read_transposed(place, range, out);
}

Result<void> SeqFile::read_packed(const PlanePlace& place, TokenRange range,
                                  std::span<std::byte> out) const {
  for (std::uint32_t token = range.begin; token < range.end;) {
    const std::uint32_t first_row = row_of_position_[token];
    std::uint32_t rows = 1;
    while (token + rows < range.end && row_of_position_[token + rows] == first_row + rows) ++rows;
    const std::size_t bytes = std::size_t{rows} * place.row_bytes;
    const auto read =
        file_.read(place.offset + std::uint64_t{first_row} * place.row_bytes, out.first(bytes));
    if (!read) return read;
    out = out.subspan(bytes);
    token += rows;
  }
  return {};
}

Result<void> SeqFile::read_transposed(const PlanePlace& place, TokenRange range,
                                      std::span<std::byte> out) const {
  const auto rows = std::span(row_of_position_).subspan(range.begin, range.size());
  const auto [lowest, highest] = std::minmax_element(rows.begin(), rows.end());
  const ChannelWindow window = choose_window(
      *lowest, *highest, static_cast<std::uint32_t>(row_of_position_.size()), place.element_bytes);
  const std::uint32_t channels = place.row_bytes / place.element_bytes;
  std::vector<std::byte> buffer;
  for (std::uint32_t channel = 0; channel < channels; channel += window.channels) {
    const std::uint32_t count = std::min(window.channels, channels - channel);
    buffer.resize(std::size_t{count} * window.rows * place.element_bytes);
    const std::uint64_t first_element =
        std::uint64_t{channel} * row_of_position_.size() + window.first_row;
    const auto read = file_.read(place.offset + first_element * place.element_bytes, buffer);
    if (!read) return read;
    channels_to_rows(buffer, window, {rows, channel, place.element_bytes, place.row_bytes}, out);
  }
  return {};
}

Result<Geometry> geometry_of_file(const std::string& path, std::uint32_t block_tokens) {
  auto file = SeqFile::open(path);
  if (!file) return tl::unexpected(file.error());
  return file->geometry(block_tokens);
}

}  // namespace esker::cli::llama
