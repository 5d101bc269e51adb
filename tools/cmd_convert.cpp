#include <fmt/format.h>

#include <cerrno>

#include "args.hpp"
#include "convert_kinds.hpp"
#include "convert_llama.hpp"
#include "convert_store.hpp"
#include "llama/output_file.hpp"
#include "progress.hpp"
#include "rows_source.hpp"
#include "rows_write.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

void show(const ConvertArgs& args, FileKind from, FileKind to, const RowsSource& source,
          std::uint64_t bytes, Output& out) {
  const std::uint64_t tokens = source.tokens().size();
  const std::string text = fmt::format("converted {} to {} ({}): {}, {}", args.input, args.output,
                                       name(to), format_items(tokens, "token"), out.size(bytes));
  if (tokens < source.asked()) {
    out.note(args.input, fmt::format("{} tokens were asked for, the first {} are there",
                                     format_count(source.asked()), format_count(tokens)));
  }
  if (args.output == "-") {
    out.note(args.input, text);
    return;
  }
  out.line(text);
  out.json({{"input", args.input},
            {"from", name(from)},
            {"output", args.output},
            {"to", name(to)},
            {"tokens", tokens},
            {"asked_tokens", source.asked()},
            {"bytes", bytes}});
}

Result<std::uint64_t> write(const ConvertArgs& args, FileKind to, const RowsSource& source,
                            llama::OutputFile& output, const Progress& progress) {
  if (to == FileKind::safetensors) return write_tensors(source, output, progress);
  const auto layout = converted_layout(args, to, source);
  if (!layout) return tl::make_unexpected(layout.error());
  return write_llama(*layout, source, output, progress);
}

/// Into a file of llama.cpp, or one of tensors.
int convert_rows(const ConvertArgs& args, FileKind from, FileKind to, Output& out) {
  const auto source = open_rows(args.input, {args.path, args.session, args.prompt});
  if (!source) return out.fail(args.input, source.error());
  if ((*source)->tokens().empty()) {
    out.note(args.input, "none of these tokens are stored");
    return code(Exit::no);
  }
  auto output = llama::OutputFile::create(args.output, args.force);
  if (!output) return out.fail(args.input, output.error());
  ProgressLine progress(out, "converting");
  const auto bytes = write(args, to, **source, *output, progress.callback());
  progress.done();
  if (!bytes && bytes.error().os_error == EPIPE) return code(Exit::pipe_closed);
  if (!bytes) return out.fail(args.input, bytes.error());
  if (const auto named = output->commit(); !named) return out.fail(args.input, named.error());
  show(args, from, to, **source, *bytes, out);
  return code(Exit::ok);
}

}  // namespace

int run(const ConvertArgs& args, Output& out) {
  const auto from = input_kind(args);
  if (!from) return out.fail(args.input, from.error());
  const auto to = output_kind(args);
  if (!to) return out.fail(args.output, to.error());
  const std::string text = convert_misuse(args, *from, *to);
  if (!text.empty()) return out.fail(args.input, text);
  if (args.output == "-" && out.is_json()) {
    return out.fail(args.input, "--json and - both want standard output: write to a file");
  }
  if (*to == FileKind::snapshot) return convert_to_snapshot(args, *from, out);
  if (*to == FileKind::store) return convert_to_store(args, *from, out);
  return convert_rows(args, *from, *to, out);
}

}  // namespace esker::cli
