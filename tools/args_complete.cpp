#include <algorithm>

#include "args_parser.hpp"
#include "plain_text.hpp"
#include "store_operand.hpp"
#include "verbs.hpp"

// What the completions of the shells ask for, so that they know every command and option:
// `esker __complete WORD...`, of which the last word is the one that is being typed. The answer is
// a line for each word that fits, with a tab and what it means; ":files" says that files do too.

namespace esker::cli {

namespace {

using Words = std::vector<std::string>;

void put(std::string& answer, const std::string& word, std::string_view text,
         std::string_view typed) {
  // What a shell would have to be told apart by letters that nobody sees is left out.
  if (!word.starts_with(typed) || harmless(word) != word) return;
  answer += fmt::format("{}\t{}\n", word, text);
}

void put_stores(std::string& answer, std::string_view typed) {
  for (const StorePlace& place : stores_in_home()) put(answer, place.label, "Store", typed);
}

void put_commands(std::string& answer, const CLI::App& app, std::string_view typed) {
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    put(answer, verb->get_name(), verb->get_description(), typed);
    for (const std::string& alias : verb->get_aliases()) {
      put(answer, alias, verb->get_description(), typed);
    }
  }
  if (app.get_parent() == nullptr) put(answer, "help", "Show the help of a command", typed);
}

void put_options(std::string& answer, const CLI::App& app, std::string_view typed) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      put(answer, "--" + name, option->get_description(), typed);
    }
  }
}

/// The words between the braces of "TEXT:{lz4,zstd}", which is how CLI11 names a choice.
Words choices_of(const CLI::Option& option) {
  const std::string kind = option.get_type_name();
  const std::size_t begin = kind.find('{');
  const std::size_t end = kind.find('}', begin);
  Words words;
  if (begin == std::string::npos || end == std::string::npos) return words;
  for (std::size_t at = begin + 1; at < end;) {
    const std::size_t comma = std::min(kind.find(',', at), end);
    words.push_back(kind.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

/// What "STORE", "STORE|FILE", "PATH" and the like stand for.
void put_operand(std::string& answer, std::string_view kind, std::string_view typed) {
  const auto has = [kind](std::string_view word) {
    return kind.find(word) != std::string_view::npos;
  };
  const bool either = kind == "A" || kind == "B";  // of diff
  const bool stores = has("STORE") || either;
  if (stores) put_stores(answer, typed);
  const bool files = has("FILE") || has("GGUF") || has("DIR") || kind == "IN" || kind == "OUT";
  if (stores || files) answer += ":files\n";
}

void put_value(std::string& answer, const CLI::Option& option, std::string_view typed) {
  const Words choices = choices_of(option);
  for (const std::string& word : choices) put(answer, word, "", typed);
  if (choices.empty()) put_operand(answer, option.get_option_text(), typed);
}

/// The kind of the operand with this number: the last one may be repeated.
std::string operand_kind(std::string_view operands, std::size_t number, bool store_given) {
  Words kinds;
  for (std::size_t at = 0; at < operands.size();) {
    const std::size_t blank = std::min(operands.find(' ', at), operands.size());
    std::string kind(operands.substr(at, blank - at));
    std::erase_if(kind, [](char letter) { return letter == '[' || letter == ']'; });
    if (!store_given || kind != "STORE") kinds.push_back(std::move(kind));
    at = blank + 1;
  }
  if (number < kinds.size()) return kinds[number];
  const bool repeated = !kinds.empty() && kinds.back().ends_with("...");
  return repeated ? kinds.back() : "";
}

const CLI::App* find_command(const CLI::App& app, const std::string& word) {
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->check_name(word)) return verb;
  }
  return nullptr;
}

/// How far the words before the last one lead.
struct Typed {
  const CLI::App* app = nullptr;
  const CLI::Option* waiting = nullptr;  ///< the option whose value comes next
  std::size_t operands = 0;
  bool store_given = false;
};

Typed follow(const CLI::App& program, const Words& words) {
  Typed typed{&program};
  for (const std::string& word : words) {
    if (typed.waiting != nullptr) {
      typed.waiting = nullptr;
    } else if (word.starts_with('-')) {
      const CLI::Option* option = typed.app->get_option_no_throw(word);
      if (option == nullptr) continue;
      typed.store_given |= option->check_lname("store");
      if (option->get_items_expected_max() != 0) typed.waiting = option;
    } else if (const CLI::App* verb = find_command(*typed.app, word);
               typed.operands == 0 && verb != nullptr) {
      typed.app = verb;
    } else {
      ++typed.operands;
    }
  }
  return typed;
}

}  // namespace

std::string Parser::complete(Words words) const {
  std::string answer;
  if (words.empty()) words.emplace_back();
  const std::string last = std::move(words.back());
  words.pop_back();
  const bool help = !words.empty() && words.front() == "help";
  if (help) words.erase(words.begin());
  const Typed typed = follow(app_, words);
  const bool group = finish_.count(typed.app) == 0;
  if (typed.waiting != nullptr) {
    put_value(answer, *typed.waiting, last);
  } else if (last.starts_with('-')) {
    put_options(answer, *typed.app, last);
  } else if (group) {
    if (typed.operands == 0) put_commands(answer, *typed.app, last);
  } else if (const Verb* verb = find_verb(full_name(typed.app)); verb != nullptr && !help) {
    put_operand(answer, operand_kind(verb->operands, typed.operands, typed.store_given), last);
  }
  return answer;
}

}  // namespace esker::cli
