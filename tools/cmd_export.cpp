#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "args.hpp"
#include "llama/output_file.hpp"
#include "llama/seq_reader.hpp"
#include "llama/seq_writer.hpp"
#include "llama/store_fit.hpp"
#include "path_name.hpp"
#include "progress.hpp"
#include "store_operand.hpp"
#include "token_ids.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

/// The tokens that are to be exported, and the root that they start from.
struct Wanted {
  std::vector<std::int32_t> tokens;
  std::string name_space;
  std::uint64_t asked = 0;  ///< as many tokens were asked for
};

/// What an export did, in numbers.
struct Exported {
  std::uint32_t tokens = 0;
  std::uint64_t asked = 0;
  std::uint64_t bytes = 0;
};

/// The tokens of a stored path, by its name.
Result<Wanted> tokens_of_path(const Store& store, const std::string& text) {
  const auto paths = store.paths();
  if (!paths) return tl::make_unexpected(paths.error());
  const auto path = find_path(text, *paths);
  if (!path) return tl::make_unexpected(path.error());
  const auto prefix = store.lookup_path(*path);
  if (!prefix) return tl::make_unexpected(prefix.error());
  auto tokens = prefix->token_ids();
  if (!tokens) return tl::make_unexpected(tokens.error());
  const auto info = std::find_if(paths->begin(), paths->end(),
                                 [&](const PathInfo& entry) { return entry.path == *path; });
  return Wanted{std::move(*tokens), info->name_space, 0};
}

Result<Wanted> wanted(const ExportArgs& args, const Store& store) {
  Result<Wanted> wanted;
  if (!args.path.empty()) {
    wanted = tokens_of_path(store, args.path);
    if (!wanted) return wanted;
  } else {
    auto ids = read_token_ids(args.prompt.ids_file);
    if (!ids) return tl::make_unexpected(ids.error());
    wanted->tokens = std::move(*ids);
    wanted->name_space = args.prompt.name_space;
  }
  wanted->asked = args.prompt.first.value_or(static_cast<std::uint32_t>(wanted->tokens.size()));
  // Blocks are found by all of their tokens, so the last one that is wanted is looked up whole.
  const std::uint64_t block = store.geometry().block_tokens;
  const std::uint64_t enough = (wanted->asked + block - 1) / block * block;
  if (enough < wanted->tokens.size()) wanted->tokens.resize(enough);
  return wanted;
}

/// The longest stored part of `wanted` whose every byte checks: half a file must never go out.
Result<Prefix> sound_prefix(const Store& store, const Wanted& wanted, const StorePlace& place,
                            Output& out) {
  for (std::uint32_t longest = UINT32_MAX;;) {
    Prefix prefix = store.lookup(wanted.tokens, wanted.name_space);
    if (prefix.empty()) return prefix;
    const auto sound = prefix.verify();
    if (sound) return prefix;
    // A damaged block is never served again, so the next lookup ends before it.
    const bool shorter = prefix.tokens() < longest;
    if (sound.error().code != Errc::corrupt || !shorter) return tl::make_unexpected(sound.error());
    out.note(place.label, sound.error().message);
    longest = prefix.tokens();
  }
}

Result<std::uint64_t> write_file(const llama::SeqLayout& layout, const Prefix& prefix,
                                 std::uint32_t count, llama::OutputFile& output,
                                 const Progress& progress) {
  auto tokens = prefix.token_ids();
  if (!tokens) return tl::make_unexpected(tokens.error());
  tokens->resize(count);
  if (const auto room = output.reserve(layout.file_bytes(tokens->size())); !room) {
    return tl::make_unexpected(room.error());
  }
  const auto fill = [&](std::uint32_t layer, Plane plane, TokenRange range,
                        std::span<std::byte> rows) {
    return prefix.copy(layer, plane, range, rows);
  };
  llama::ByteSink sink(output.fd(), output.name());
  auto done = llama::write_sequence(layout, *tokens, fill, sink, progress);
  if (done) done = output.commit();
  if (!done) return tl::make_unexpected(done.error());
  return sink.bytes();
}

void show(const StorePlace& place, const ExportArgs& args, const Exported& done, Output& out) {
  const std::string text =
      fmt::format("exported {} tokens ({}) to {}", format_count(done.tokens), out.size(done.bytes),
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
            {"tokens", done.tokens},
            {"asked_tokens", done.asked},
            {"bytes", done.bytes},
            {"output", args.output}});
}

/// What CLI parsing alone cannot rule out.
std::string misuse(const ExportArgs& args, const Output& out) {
  if (args.path.empty() == args.prompt.ids_file.empty()) {
    return "say which prefix: a PATH as `esker ls` shows it, or --ids FILE";
  }
  if (args.like.empty()) return "--like FILE is missing: a file that the target server has saved";
  if (args.output.empty()) return "-o OUT is missing";
  if (args.output == "-" && out.is_json()) {
    return "--json and -o - both want standard output: write to a file";
  }
  return {};
}

}  // namespace

int run(const ExportArgs& args, Output& out) {
  const StorePlace place = place_of(args.store);
  if (const std::string text = misuse(args, out); !text.empty()) return out.fail(place.label, text);
  const auto like = llama::SeqFile::open(args.like);
  if (!like) return out.fail(place.label, like.error());
  const auto store = open_to_look(place);
  if (!store) return out.fail(place.label, store.error());
  const auto fits = llama::check_fit(*like, store->geometry(), store->model());
  if (!fits) return out.fail(place.label, fits.error());
  const auto asked = wanted(args, *store);
  if (!asked) return out.fail(place.label, asked.error());
  auto output = llama::OutputFile::create(args.output, args.force);
  if (!output) return out.fail(place.label, output.error());

  const auto prefix = sound_prefix(*store, *asked, place, out);
  if (!prefix) return out.fail(place.label, prefix.error());
  if (prefix->empty()) {
    out.note(place.label, "none of these tokens are stored");
    if (args.output != "-") out.json({{"store", place.label}, {"tokens", 0}, {"bytes", 0}});
    return code(Exit::no);
  }
  const auto count =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(prefix->tokens(), asked->asked));
  ProgressLine progress(out, "exporting");
  const auto bytes = write_file(like->layout(), *prefix, count, *output, progress.callback());
  progress.done();
  if (!bytes) return out.fail(place.label, bytes.error());
  show(place, args, {count, asked->asked, *bytes}, out);
  return code(Exit::ok);
}

}  // namespace esker::cli
