#include "describe.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "units.hpp"

namespace esker::cli {

std::string model_line(const ModelId& model) {
  if (model.unnamed()) return "unnamed";
  for (const std::string_view key : {"name", "model"}) {
    if (const std::string_view value = model.get(key); !value.empty()) return std::string(value);
  }
  std::string line;
  for (const auto& [key, value] : model.entries()) {
    constexpr std::size_t shown = 24;
    line += line.empty() ? "" : " ";
    line += key + '=' + (value.size() > shown ? value.substr(0, shown) + "..." : value);
  }
  return line;
}

std::string geometry_line(const Geometry& geometry) {
  const auto rows = [](const LayerRows& layer) {
    return fmt::format("K {} + V {}", format_bytes(layer.key_row_bytes),
                       format_bytes(layer.value_row_bytes));
  };
  const LayerRows first = geometry.layers.empty() ? LayerRows{} : geometry.layers.front();
  const bool equal = std::all_of(geometry.layers.begin(), geometry.layers.end(),
                                 [&](const LayerRows& layer) { return layer == first; });
  const std::string shape =
      equal ? fmt::format("{} layers x ({})", geometry.layers.size(), rows(first))
            : fmt::format("{} unequal layers", geometry.layers.size());
  return fmt::format("{}, {}, {} tokens/block ({})", shape, geometry.dtype, geometry.block_tokens,
                     format_bytes(geometry.block_bytes()));
}

void show_shape(Output& out, const ModelId& model, const Geometry& geometry) {
  if (model.unnamed()) out.fact("model", model_line(model));
  for (const auto& [key, value] : model.entries()) {
    out.fact("model", fmt::format("{}={}", key, value));
  }
  out.fact("geometry", geometry_line(geometry));
  out.fact("one token", out.size(geometry.token_bytes()));
}

Value model_value(const ModelId& model) {
  Object entries;
  for (const auto& [key, value] : model.entries()) entries.emplace_back(key, value);
  return Object{{"unnamed", model.unnamed()}, {"entries", std::move(entries)}};
}

Value geometry_value(const Geometry& geometry) {
  List layers;
  for (const LayerRows& layer : geometry.layers) {
    layers.emplace_back(
        Object{{"key_row_bytes", layer.key_row_bytes}, {"value_row_bytes", layer.value_row_bytes}});
  }
  return Object{{"dtype", geometry.dtype},
                {"block_tokens", geometry.block_tokens},
                {"token_bytes", geometry.token_bytes()},
                {"block_bytes", geometry.block_bytes()},
                {"layers", std::move(layers)}};
}

std::uint64_t last_used(const Info& info) {
  return info.last_used_unix_ns > 0 ? static_cast<std::uint64_t>(info.last_used_unix_ns) : 0;
}

std::string namespace_text(const std::string& name_space) {
  const bool printable = std::all_of(name_space.begin(), name_space.end(),
                                     [](char letter) { return letter >= ' ' && letter <= '~'; });
  return printable ? name_space : "0x" + format_hex(name_space);
}

Value time_value(std::uint64_t unix_ns) {
  if (unix_ns == 0) return {};
  return format_time(unix_ns);
}

void show_freed(Output& out, std::string_view verb, std::string_view what, const Freed& freed,
                bool dry_run) {
  const std::string did = dry_run ? fmt::format("would have {}", verb) : std::string(verb);
  const std::string_view comma = what.empty() ? "" : ", ";
  out.line(fmt::format("{} {}{}{}", did, what, comma, format_items(freed.blocks, "block")));
  out.fact("freed for reuse", out.size(freed.reusable_bytes));
  out.fact("returned to disk", out.size(freed.disk_bytes));
  if (freed.pinned_blocks != 0) {
    out.fact("still pinned", fmt::format("{}: readers hold them, they go when these let go",
                                         format_items(freed.pinned_blocks, "block")));
  }
  if (freed.shared_blocks != 0) {
    out.fact("still shared", fmt::format("{}: others use them, they stay",
                                         format_items(freed.shared_blocks, "block")));
  }
}

Object freed_value(const StorePlace& place, const Freed& freed, bool dry_run) {
  return {{"store", place.label},           {"dry_run", dry_run},
          {"blocks", freed.blocks},         {"reusable_bytes", freed.reusable_bytes},
          {"disk_bytes", freed.disk_bytes}, {"pinned_blocks", freed.pinned_blocks}};
}

void show_freed(Output& out, const StorePlace& place, std::string_view verb, const Freed& freed,
                bool dry_run) {
  show_freed(out, verb, freed.paths == 0 ? "" : format_items(freed.paths, "path"), freed, dry_run);
  Object fields = freed_value(place, freed, dry_run);
  fields.emplace_back("paths", freed.paths);
  out.json(std::move(fields));
}

}  // namespace esker::cli
