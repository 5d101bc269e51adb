#include "convert_kinds.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "llama/field_reader.hpp"
#include "llama/seq_reader.hpp"
#include "rows_source.hpp"
#include "store_operand.hpp"

namespace esker::cli {

namespace {

constexpr std::array<std::pair<std::string_view, FileKind>, 5> kinds{{
    {"llama", FileKind::llama},
    {"llama-session", FileKind::llama_session},
    {"esnap", FileKind::snapshot},
    {"store", FileKind::store},
    {"safetensors", FileKind::safetensors},
}};

constexpr std::array<std::pair<std::string_view, FileKind>, 4> endings{{
    {".esnap", FileKind::snapshot},
    {".safetensors", FileKind::safetensors},
    {".slot", FileKind::llama},
    {".session", FileKind::llama_session},
}};

tl::unexpected<Error> invalid(std::string message) {
  return tl::make_unexpected(Error{Errc::invalid, 0, std::move(message)});
}

std::optional<FileKind> kind_named(std::string_view text) {
  for (const auto& [known, kind] : kinds) {
    if (known == text) return kind;
  }
  return std::nullopt;
}

/// A sequence file or a session file, by its first word; its reader names anything else.
FileKind llama_kind(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return FileKind::llama;
  const auto file = llama::InputFile::open(path);
  if (!file) return FileKind::llama;
  llama::FieldReader in(*file);
  return in.u32("magic") == llama::session_magic ? FileKind::llama_session : FileKind::llama;
}

/// An option that was given, and whether it means something here.
struct Given {
  bool given = false;
  bool fits = true;
  std::string_view text;
};

}  // namespace

std::string convert_misuse(const ConvertArgs& args, FileKind from, FileKind to) {
  if (from == FileKind::snapshot && to == FileKind::snapshot) {
    return "both are snapshots: `esker repack` and `esker split` make one of another";
  }
  if (from == FileKind::store && to == FileKind::store) {
    return "both are stores: `esker export IN - | esker import OUT -` copies";
  }
  if (to == FileKind::store && args.output == "-") return "a store cannot go to standard output";
  const bool stored = to == FileKind::snapshot || to == FileKind::store;
  const bool named = !args.path.empty() || !args.prompt.ids_file.empty();
  const bool whole = from == FileKind::snapshot && to == FileKind::store;
  const std::array<Given, 9> options{{
      {!args.like.empty(), is_llama(to), "--like is for a file of llama.cpp"},
      {!args.architecture.empty(), to == FileKind::llama_session, "--arch is for a session file"},
      {args.file_version.has_value(), is_llama(to), "--file-version is for a file of llama.cpp"},
      {!args.model.empty() || args.assume_model, is_llama(from) && stored,
       "--model, --model-file and --assume-model are for files of llama.cpp that become a snapshot "
       "or go into a store"},
      {named, !is_llama(from), "a file of llama.cpp holds one text: leave --path and --ids out"},
      {!args.session.empty(), !is_llama(from) || stored,
       "a file of llama.cpp holds one text: leave --session out"},
      {args.prompt.first.has_value(), !stored || !args.prompt.ids_file.empty(),
       "--first is for files of llama.cpp and tensors, or for --ids"},
      {named || !args.session.empty(), !whole,
       "all of a snapshot goes into a store: `esker split` takes a session out first"},
      {!args.prompt.name_space.empty(), stored || !args.prompt.ids_file.empty(),
       "--namespace is for --ids, a snapshot or a store"},
  }};
  for (const Given& option : options) {
    if (option.given && !option.fits) return std::string(option.text);
  }
  return {};
}

std::string_view name(FileKind kind) noexcept {
  for (const auto& [text, known] : kinds) {
    if (known == kind) return text;
  }
  return "";
}

Result<FileKind> input_kind(const ConvertArgs& args) {
  const auto source = kind_of_source(args.input);
  if (!source) return tl::make_unexpected(source.error());
  FileKind found = *source == SourceKind::store      ? FileKind::store
                   : *source == SourceKind::snapshot ? FileKind::snapshot
                                                     : llama_kind(args.input);
  const auto wanted = kind_named(args.from);
  // A pipe is read once: which of the two it holds is known when that has been done.
  std::error_code ignored;
  const bool pipe = !std::filesystem::is_regular_file(args.input, ignored);
  if (pipe && found == FileKind::llama && wanted == FileKind::llama_session) found = *wanted;
  if (pipe && wanted == FileKind::snapshot && found == FileKind::llama) {
    return invalid(
        fmt::format("{}: a snapshot is converted from a file that can be searched, not "
                    "from a pipe",
                    args.input));
  }
  if (wanted && *wanted != found) {
    return invalid(fmt::format("{}: --from says {}, but it is {}", args.input, args.from,
                               found == FileKind::store ? "no file of that kind" : name(found)));
  }
  return found;
}

Result<FileKind> output_kind(const ConvertArgs& args) {
  if (const auto given = kind_named(args.to)) return *given;
  const StorePlace place = place_of(args.output);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(place.path + "/esker", ignored)) return FileKind::store;
  for (const auto& [ending, kind] : endings) {
    if (args.output.ends_with(ending)) return kind;
  }
  if (!args.like.empty()) return llama_kind(args.like);
  return invalid(
      fmt::format("{}: its name does not tell what it is to be: give --to (llama, llama-session, "
                  "esnap, store or safetensors)",
                  args.output));
}

}  // namespace esker::cli
