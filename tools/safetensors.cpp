#include <fmt/format.h>

#include <algorithm>
#include <esker/version.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "path_name.hpp"
#include "plane_type.hpp"
#include "rows_write.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

using Json = nlohmann::ordered_json;

/// One tensor: a plane, or the tokens.
struct Tensor {
  std::string name;
  std::string_view type;
  std::uint32_t element_bytes = 0;
  std::uint32_t row_bytes = 0;
  PlaneRange rows;
  bool is_tokens = false;
};

std::vector<Tensor> tensors_of(const RowsSource& source) {
  const Geometry& geometry = source.geometry();
  const TokenRange all{0, static_cast<std::uint32_t>(source.tokens().size())};
  const auto layers = static_cast<std::uint32_t>(geometry.layers.size());
  std::vector<Tensor> tensors{{"input_ids", "I32", 4, 4, {0, Plane::key, all}, true}};
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    for (const Plane plane : {Plane::key, Plane::value}) {
      const std::uint32_t row_bytes = geometry.row_bytes(layer, plane);
      if (row_bytes == 0) continue;
      const PlaneType type = plane_type(geometry, layer, plane);
      tensors.push_back({fmt::format("model.layers.{}.{}", layer, name(plane)),
                         type.tensor,
                         type.element_bytes,
                         row_bytes,
                         {layer, plane, all},
                         false});
    }
  }
  // There is no padding between tensors: in this order each begins at a multiple of its element.
  std::stable_sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
    return a.element_bytes > b.element_bytes;
  });
  return tensors;
}

Json metadata_of(const RowsSource& source) {
  Json metadata{{"format", "pt"},
                {"esker_version", std::string(version())},
                {"tokens", std::to_string(source.tokens().size())},
                {"dtype", source.geometry().dtype},
                {"namespace_hex", format_hex(source.name_space())}};
  if (source.path() != 0) metadata["path"] = full_path_name(source.path());
  for (const auto& [key, value] : source.model().entries()) metadata["model." + key] = value;
  return metadata;
}

/// The header, preceded by its length and padded so that the data begins at a multiple of 8.
std::string head_of(const RowsSource& source, const std::vector<Tensor>& tensors) {
  const std::uint64_t tokens = source.tokens().size();
  Json header;
  header["__metadata__"] = metadata_of(source);
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const std::uint64_t end = offset + tokens * tensor.row_bytes;
    Json shape = Json::array({tokens});
    if (!tensor.is_tokens) shape.push_back(tensor.row_bytes / tensor.element_bytes);
    header[tensor.name] = {
        {"dtype", tensor.type}, {"shape", shape}, {"data_offsets", Json::array({offset, end})}};
    offset = end;
  }
  // A model id is bytes; what is no UTF-8 in it must not stop an export.
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace

Result<std::uint64_t> write_tensors(const RowsSource& source, llama::OutputFile& output,
                                    const Progress& progress) {
  const std::vector<Tensor> tensors = tensors_of(source);
  const std::string head = head_of(source, tensors);
  const std::uint64_t total =
      head.size() + source.tokens().size() * (4 + source.geometry().token_bytes());
  auto done = output.reserve(total);
  if (done) done = prove_rows(source, output);
  llama::ByteSink sink(output.fd(), output.name());
  if (done) done = sink.put(std::as_bytes(std::span(head)));
  for (const Tensor& tensor : tensors) {
    if (!done) break;
    done = tensor.is_tokens ? sink.put(std::as_bytes(source.tokens()))
                            : put_rows(source, tensor.rows, sink);
    if (progress) progress(sink.bytes(), total);
  }
  if (done) done = sink.flush();
  if (done) done = source.check_unchanged();
  if (!done) return tl::make_unexpected(done.error());
  return sink.bytes();
}

}  // namespace esker::cli
