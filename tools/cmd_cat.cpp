#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "args.hpp"
#include "llama/output_file.hpp"
#include "plane_type.hpp"
#include "rows_source.hpp"
#include "rows_write.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// The rows that are asked for, or why there are none.
Result<PlaneRange> range_of(const CatArgs& args, const RowsSource& source) {
  const Geometry& geometry = source.geometry();
  const auto invalid = [](std::string message) {
    return tl::make_unexpected(Error{Errc::invalid, 0, std::move(message)});
  };
  if (args.layer >= geometry.layers.size()) {
    return invalid(
        fmt::format("--layer {}: expected 0 to {}", args.layer, geometry.layers.size() - 1));
  }
  if (geometry.row_bytes(args.layer, args.plane) == 0) {
    return invalid(
        fmt::format("layer {} keeps no {} rows", args.layer, std::string(name(args.plane))));
  }
  const auto tokens = static_cast<std::uint32_t>(source.tokens().size());
  const TokenRange range{args.range.begin, std::min(args.range.end, tokens)};
  if (range.begin >= tokens) {
    return invalid(fmt::format("--range {}: expected a start below {}, as many tokens are there",
                               range.begin, tokens));
  }
  return PlaneRange{args.layer, args.plane, range};
}

void show(const CatArgs& args, const RowsSource& source, const PlaneRange& range,
          std::uint64_t bytes, Output& out) {
  const PlaneType type = plane_type(source.geometry(), range.layer, range.plane);
  const std::uint32_t columns =
      source.geometry().row_bytes(range.layer, range.plane) / type.element_bytes;
  const std::string text =
      fmt::format("wrote {} x {} of {} (dtype {}) to {}", format_count(range.tokens.size()),
                  format_count(columns), plane_dtype(source.geometry().dtype, range.plane),
                  type.numpy, args.output);
  if (args.output == "-") return;  // standard output is the file
  out.line(text);
  out.json({{"source", args.store},
            {"layer", range.layer},
            {"plane", name(range.plane)},
            {"first_token", range.tokens.begin},
            {"tokens", range.tokens.size()},
            {"elements", columns},
            {"dtype", plane_dtype(source.geometry().dtype, range.plane)},
            {"numpy_dtype", type.numpy},
            {"bytes", bytes},
            {"output", args.output}});
}

}  // namespace

int run(const CatArgs& args, Output& out) {
  if (args.output == "-" && out.is_json()) {
    return out.fail(args.store, "--json and -o - both want standard output: write to a file");
  }
  const auto source =
      open_rows(args.store, {args.path, args.session, args.prompt}, RowsCheck::when_copied);
  if (!source) return out.fail(args.store, source.error());
  if ((*source)->tokens().empty()) {
    out.note(args.store, "none of these tokens are stored");
    return code(Exit::no);
  }
  const auto range = range_of(args, **source);
  if (!range) return out.fail(args.store, range.error());
  auto output = llama::OutputFile::create(args.output, args.force);
  if (!output) return out.fail(args.store, output.error());
  const auto bytes = write_npy(**source, *range, *output);
  if (!bytes && bytes.error().os_error == EPIPE) return code(Exit::pipe_closed);
  if (!bytes) return out.fail(args.store, bytes.error());
  if (const auto named = output->commit(); !named) return out.fail(args.store, named.error());
  show(args, **source, *range, *bytes, out);
  return code(Exit::ok);
}

}  // namespace esker::cli
