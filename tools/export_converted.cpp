#include "export_converted.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "convert_llama.hpp"
#include "llama/output_file.hpp"
#include "progress.hpp"
#include "rows_source.hpp"
#include "rows_write.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// The one that such a file may hold, or "".
std::string only(const std::vector<std::string>& names) {
  return names.empty() ? "" : names.front();
}

Result<std::uint64_t> write(const ExportArgs& args, const RowsSource& source,
                            llama::OutputFile& output, const Progress& progress) {
  if (args.format == "safetensors") return write_tensors(source, output, progress);
  ConvertArgs as;
  as.like = args.like;
  as.architecture = args.architecture;
  const auto layout = converted_layout(as, FileKind::llama_session, source);
  if (!layout) return tl::make_unexpected(layout.error());
  return write_llama(*layout, source, output, progress);
}

void show(const ExportArgs& args, const RowsSource& source, std::uint64_t bytes, Output& out) {
  const std::uint64_t tokens = source.tokens().size();
  const std::string text =
      fmt::format("exported {} ({}) to {}", format_items(tokens, "token"), out.size(bytes),
                  args.output == "-" ? "standard output" : args.output);
  if (tokens < source.asked()) {
    out.note(args.store, fmt::format("{} tokens were asked for, the first {} are stored",
                                     format_count(source.asked()), format_count(tokens)));
  }
  if (args.output == "-") {
    out.note(args.store, text);
    return;
  }
  out.line(text);
  const std::string session = only(args.sessions);
  out.json({{"store", args.store},
            {"session", session.empty() ? Value() : Value(session)},
            {"format", args.format},
            {"tokens", tokens},
            {"asked_tokens", source.asked()},
            {"bytes", bytes},
            {"output", args.output}});
}

}  // namespace

int export_converted(const ExportArgs& args, Output& out) {
  const auto source = open_store_rows(
      args.store, {only(args.paths), only(args.sessions), args.prompt}, RowsCheck::all);
  if (!source) return out.fail(args.store, source.error());
  if ((*source)->tokens().empty()) {
    out.note(args.store, "none of these tokens are stored");
    if (args.output != "-") out.json({{"store", args.store}, {"tokens", 0}, {"bytes", 0}});
    return code(Exit::no);
  }
  auto output = llama::OutputFile::create(args.output, args.force);
  if (!output) return out.fail(args.store, output.error());
  ProgressLine progress(out, "exporting");
  const auto bytes = write(args, **source, *output, progress.callback());
  progress.done();
  if (!bytes && bytes.error().os_error == EPIPE) return code(Exit::pipe_closed);
  if (!bytes) return out.fail(args.store, bytes.error());
  if (const auto named = output->commit(); !named) return out.fail(args.store, named.error());
  show(args, **source, *bytes, out);
  return code(Exit::ok);
}

}  // namespace esker::cli
