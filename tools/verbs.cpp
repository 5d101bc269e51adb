#include "verbs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "units.hpp"

namespace esker::cli {

const Verb* find_verb(std::string_view name) noexcept {
  const auto* found =
      std::find_if(verbs.begin(), verbs.end(), [&](const Verb& verb) { return verb.name == name; });
  return found == verbs.end() ? nullptr : found;
}

std::string usage_of(std::string_view name) {
  const Verb* verb = find_verb(name);
  if (verb == nullptr) return "Usage: esker COMMAND [operands] [options]\n";
  std::string text = fmt::format(
      "Usage: esker {} {} [options]\n"
      "  STORE  a name in the home, or a path with a '/'; -s or ESKER_STORE may stand for it\n",
      verb->name, verb->operands);
  if (verb->operands.find("PATH") != std::string_view::npos) {
    text += "  PATH   a name that `esker ls STORE` shows, or the beginning of it\n";
  }
  if (verb->operands.find("FILE") != std::string_view::npos) {
    text += "  FILE   the file to read; - is standard input\n";
  }
  return text;
}

std::string no_such_verb(std::string_view word) {
  std::vector<std::string> known{"help"};
  for (const Verb& verb : verbs) known.emplace_back(verb.name);
  std::string text = fmt::format("there is no command \"{}\"", word);
  if (const std::string_view meant = nearest(word, known); !meant.empty()) {
    text += fmt::format("; did you mean `esker {}`?", meant);
  }
  return text;
}

}  // namespace esker::cli
