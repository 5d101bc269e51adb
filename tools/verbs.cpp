#include "verbs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "units.hpp"

namespace esker::cli {

namespace {

/// The last words of the commands whose other words are `parent`.
std::vector<std::string> names_within(std::string_view parent) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs) {
    const std::size_t blank = verb.name.rfind(' ');
    const bool nested = blank != std::string_view::npos;
    if ((nested ? verb.name.substr(0, blank) : "") != parent) continue;
    names.emplace_back(nested ? verb.name.substr(blank + 1) : verb.name);
    if (!verb.alias.empty()) names.emplace_back(verb.alias);
  }
  return names;
}

}  // namespace

const Verb* find_verb(std::string_view name) noexcept {
  const auto* found =
      std::find_if(verbs.begin(), verbs.end(), [&](const Verb& verb) { return verb.name == name; });
  return found == verbs.end() ? nullptr : found;
}

std::string usage_of(std::string_view name) {
  const Verb* verb = find_verb(name);
  if (verb == nullptr) return "Usage: esker COMMAND [operands] [options]\n";
  std::string text = fmt::format("Usage: esker {} {}{}[options]\n", verb->name, verb->operands,
                                 verb->operands.empty() ? "" : " ");
  if (verb->operands.starts_with("IN")) {
    return text +
           "  IN     a file (told by its content; - is standard input), or a store\n"
           "  OUT    the file to write; - is standard output\n";
  }
  if (!verb->alias.empty()) text += fmt::format("       esker {} is the same\n", verb->alias);
  const bool files_only = verb->operands.starts_with("FILE");
  if (verb->operands.find("STORE") != std::string_view::npos) {
    text +=
        "  STORE  a name in the home, or a path with a '/'; -s or ESKER_STORE may stand for it\n";
  }
  if (verb->operands == "A B") {
    text += "  A, B   a store (a name in the home, or a path with a '/') or a snapshot file\n";
  }
  if (files_only) text += "  FILE   a snapshot, as `esker export` writes it\n";
  if (verb->operands.find("PATH") != std::string_view::npos) {
    text += "  PATH   a name that `esker ls STORE` shows, or the beginning of it\n";
  }
  if (verb->operands.ends_with("[-]")) text += "  -      the same as -o -: standard output\n";
  if (verb->operands.find("NAME") != std::string_view::npos) {
    text += "  NAME   a session, as `esker session ls STORE` shows it\n";
  }
  if (verb->operands.find("NEW") != std::string_view::npos) {
    text += "  NEW    a name that no session has: 1 to 64 bytes of UTF-8\n";
  }
  if (!files_only && verb->operands.find("FILE") != std::string_view::npos) {
    text += "  FILE   the file to read; - is standard input\n";
  }
  return text;
}

std::string no_such_verb(std::string_view parent, std::string_view word) {
  std::vector<std::string> known = names_within(parent);
  if (parent.empty()) known.emplace_back("help");
  const std::string before = parent.empty() ? "esker " : fmt::format("esker {} ", parent);
  std::string text = parent.empty() ? fmt::format("there is no command \"{}\"", word)
                                    : fmt::format("{} has no command \"{}\"", parent, word);
  if (const std::string_view meant = nearest(word, known); !meant.empty()) {
    text += fmt::format("; did you mean `{}{}`?", before, meant);
  }
  return text;
}

std::string commands_within(std::string_view parent) {
  return fmt::format("{}", fmt::join(names_within(parent), ", "));
}

}  // namespace esker::cli
