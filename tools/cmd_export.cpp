#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "args.hpp"
#include "export_converted.hpp"
#include "export_snapshot.hpp"
#include "llama/output_file.hpp"
#include "llama/row_placer.hpp"
#include "llama/seq_reader.hpp"
#include "llama/seq_writer.hpp"
#include "llama/store_fit.hpp"
#include "progress.hpp"
#include "rows_source.hpp"
#include "session_operand.hpp"
#include "store_operand.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// What an export did, in numbers.
struct Exported {
  std::uint32_t tokens = 0;
  std::uint64_t asked = 0;
  std::uint64_t bytes = 0;
};

Result<WantedTokens> wanted(const ExportArgs& args, Store& store) {
  PrefixChoice choice;
  if (!args.paths.empty()) choice.path = args.paths.front();
  if (!args.sessions.empty()) choice.session = args.sessions.front();
  choice.prompt = args.prompt;
  return wanted_tokens(store, choice);
}

/// Into a file, rows straight from the store; nobody sees the file before all of it was verified.
Result<std::uint64_t> write_file(const llama::SeqLayout& layout, Tokens tokens,
                                 const Prefix& prefix, llama::OutputFile& output,
                                 const Progress& progress) {
  if (const auto room = output.reserve(layout.file_bytes(tokens.size())); !room) {
    return tl::make_unexpected(room.error());
  }
  llama::ByteSink sink(output.fd(), output.name());
  const auto places = llama::write_frame(layout, tokens, sink);
  if (!places) return tl::make_unexpected(places.error());
  const auto placed = llama::place_rows(prefix, static_cast<std::uint32_t>(tokens.size()), *places,
                                        output, progress);
  if (!placed) return tl::make_unexpected(placed.error());
  return sink.bytes();
}

/// Front to back: for pipes, where half a file must never go out, and for V by channels.
Result<std::uint64_t> write_stream(const llama::SeqLayout& layout, Tokens tokens,
                                   const Prefix& prefix, llama::OutputFile& output,
                                   const Progress& progress) {
  if (const auto sound = prefix.verify(); !sound) return tl::make_unexpected(sound.error());
  if (const auto room = output.reserve(layout.file_bytes(tokens.size())); !room) {
    return tl::make_unexpected(room.error());
  }
  const auto fill = [&](std::uint32_t layer, Plane plane, TokenRange range,
                        std::span<std::byte> rows) {
    return prefix.copy(layer, plane, range, rows);
  };
  llama::ByteSink sink(output.fd(), output.name());
  const auto done = llama::write_sequence(layout, tokens, fill, sink, progress);
  if (!done) return tl::make_unexpected(done.error());
  return sink.bytes();
}

/// A prefix that is not pinned may change while it is read, which only copying notices.
Result<Exported> write_prefix(const llama::SeqLayout& layout, const Prefix& prefix, bool pinned,
                              std::uint64_t asked, llama::OutputFile& output,
                              const Progress& progress) {
  auto tokens = prefix.token_ids();
  if (!tokens) return tl::make_unexpected(tokens.error());
  tokens->resize(std::min<std::uint64_t>(tokens->size(), asked));
  const bool in_place = pinned && output.seekable() && !layout.values_transposed;
  const auto bytes = in_place ? write_file(layout, *tokens, prefix, output, progress)
                              : write_stream(layout, *tokens, prefix, output, progress);
  if (!bytes) return tl::make_unexpected(bytes.error());
  if (const auto named = output.commit(); !named) return tl::make_unexpected(named.error());
  return Exported{static_cast<std::uint32_t>(tokens->size()), asked, *bytes};
}

/// Exports the longest stored part of `wanted` whose every byte checks.
Result<Exported> export_sound(const llama::SeqLayout& layout, const Look& look,
                              const WantedTokens& wanted, llama::OutputFile& output, Output& out) {
  for (std::uint32_t longest = UINT32_MAX;;) {
    const Prefix prefix = look.store.lookup(wanted.tokens, wanted.name_space);
    if (prefix.empty()) return Exported{0, wanted.asked, 0};
    ProgressLine progress(out, "exporting");
    auto done =
        write_prefix(layout, prefix, look.seated, wanted.asked, output, progress.callback());
    progress.done();
    // A damaged block is never served again, so the next lookup ends before it.
    const bool shorter = prefix.tokens() < longest;
    if (done || done.error().code != Errc::corrupt || !shorter) return done;
    out.note(output.name(), done.error().message);
    longest = prefix.tokens();
    if (!output.seekable()) continue;
    if (const auto again = output.restart(); !again) return tl::make_unexpected(again.error());
  }
}

void show(const StorePlace& place, const ExportArgs& args, const Exported& done, Output& out) {
  const std::string count =
      args.sessions.empty()
          ? format_items(done.tokens, "token")
          : fmt::format("{} of {} of session {}", format_count(done.tokens),
                        format_items(done.asked, "token"), quoted(args.sessions.front()));
  const std::string text = fmt::format("exported {} ({}) to {}", count, out.size(done.bytes),
                                       args.output == "-" ? "standard output" : args.output);
  // Standard output belongs to the file when that goes there.
  if (args.output == "-") {
    out.note(place.label, text);
  } else {
    out.line(text);
  }
  if (done.tokens < done.asked) {
    out.note(place.label, fmt::format("{} tokens were asked for, the first {} are stored",
                                      format_count(done.asked), format_count(done.tokens)));
  }
  if (args.output == "-") return;
  out.json({{"store", place.label},
            {"session", args.sessions.empty() ? Value() : Value(args.sessions.front())},
            {"tokens", done.tokens},
            {"asked_tokens", done.asked},
            {"bytes", done.bytes},
            {"output", args.output}});
}

/// What CLI parsing alone cannot rule out.
std::string misuse(const ExportArgs& args, const Output& out) {
  const int prefixes = !args.paths.empty() + !args.prompt.ids_file.empty() + !args.sessions.empty();
  if (prefixes != 1) {
    return "say which prefix: a PATH as `esker ls` shows it, --ids FILE or --session NAME";
  }
  if (args.like.empty() && args.format != "safetensors") {
    return "--like FILE is missing: a file that the target server has saved";
  }
  if (!args.like.empty() && args.format == "safetensors") return "--like is for files of llama.cpp";
  if (!args.architecture.empty() && args.format != "llama-session") {
    return "--arch is for --format llama-session";
  }
  if (args.output == "-" && out.is_json()) {
    return "--json and -o - both want standard output: write to a file";
  }
  return {};
}

}  // namespace

int run(const ExportArgs& args, Output& out) {
  if (args.format == "esnap") return export_as_snapshot(args, out);
  const StorePlace place = place_of(args.store);
  if (const std::string text = misuse(args, out); !text.empty()) return out.fail(place.label, text);
  if (args.format != "llama") return export_converted(args, out);
  const auto like = llama::SeqFile::open(args.like);
  if (!like) return out.fail(place.label, like.error());
  auto look = look_at(place);
  if (!look) return out.fail(place.label, look.error());
  const auto fits = llama::check_fit(*like, look->store.geometry(), look->store.model());
  if (!fits) return out.fail(place.label, fits.error());
  const auto asked = wanted(args, look->store);
  if (!asked) return out.fail(place.label, asked.error());
  auto output = llama::OutputFile::create(args.output, args.force);
  if (!output) return out.fail(place.label, output.error());

  const auto done = export_sound(like->layout(), *look, *asked, *output, out);
  if (!done && done.error().os_error == EPIPE) return code(Exit::pipe_closed);
  if (!done) return out.fail(place.label, done.error());
  if (done->tokens == 0) {
    out.note(place.label, "none of these tokens are stored");
    if (args.output != "-") out.json({{"store", place.label}, {"tokens", 0}, {"bytes", 0}});
    return code(Exit::no);
  }
  show(place, args, *done, out);
  return code(Exit::ok);
}

}  // namespace esker::cli
