#include "args.hpp"

#include <algorithm>
#include <cstdlib>

#include "args_parser.hpp"
#include "verbs.hpp"

namespace esker::cli {

// The help.

std::string full_name(const CLI::App* app) {
  const CLI::App* parent = app->get_parent();
  if (parent == nullptr) return "";
  const std::string before = full_name(parent);
  return before.empty() ? app->get_name() : before + ' ' + app->get_name();
}

std::string HelpText::make_help(const CLI::App* app, std::string name,
                                CLI::AppFormatMode mode) const {
  if (mode == CLI::AppFormatMode::Sub) return make_expanded(app);
  std::string text = fmt::format("{}\n\nExamples:\n{}\n{}\n{}{}", app->get_description(),
                                 app->get_footer(), make_usage(app, std::move(name)),
                                 make_groups(app, mode), make_subcommands(app, mode));
  for (std::size_t at = 0; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
  return text.substr(0, text.find_last_not_of('\n') + 1) + '\n';
}

std::string HelpText::make_usage(const CLI::App* app, std::string) const {
  return usage_of(full_name(app));
}

std::string HelpText::make_option_opts(const CLI::Option* option) const {
  return option->get_option_text().empty() ? "" : ' ' + option->get_option_text();
}

// Parsing.

Parser::Parser() : app_("esker: keeps the KV cache of LLM inference for all processes of a host") {
  const char* environment = std::getenv("ESKER_STORE");
  if (environment != nullptr) sources_.environment = environment;
  app_.name("esker");
  app_.formatter(std::make_shared<HelpText>());
  app_.footer(
      "  esker                                       the stores in the home\n"
      "  esker create chat --like slot.bin --model-file model.gguf\n"
      "  esker import chat slot.bin --model-file model.gguf\n"
      "  esker ls chat\n"
      "  esker help create\n");
  app_.require_subcommand(0, 1);
  add_common(&app_);
  app_.add_flag("--version", wants_version_, "Show the versions of library and format")
      ->group("Common options");
  add_look();
  add_sessions();
  add_move();
  add_convert_verbs();
  add_snapshots();
  add_change_verbs();
  add_cold();
  add_house();
}

const CLI::App* Parser::chosen() const {
  const CLI::App* app = &app_;
  for (auto given = app->get_subcommands(); !given.empty(); given = app->get_subcommands()) {
    app = given.front();
  }
  return app == &app_ ? nullptr : app;
}

std::string Parser::unknown_verb() const {
  const CLI::App* app = chosen();
  for (const std::string& word : (app == nullptr ? app_ : *app).remaining()) {
    if (!word.starts_with('-')) return word;
  }
  return "";
}

Invocation Parser::invocation() {
  if (const CLI::App* app = chosen(); app != nullptr) {
    output_.command = full_name(app);
    Command command = finish_.at(app)();
    return {output_, std::move(command)};
  }
  output_.command = wants_version_ ? "version" : "overview";
  return {output_, wants_version_ ? Command(VersionArgs{}) : Command(OverviewArgs{})};
}

int Parser::usage_error(const CLI::ParseError& error, bool json) {
  const CLI::App* app = chosen();
  OutputOptions options = output_;
  options.json = json;
  options.command = app == nullptr ? "" : full_name(app);
  Output out(options);
  std::string message = error.what();
  if (finish_.count(app) == 0) {  // the program, or a group of commands
    if (const std::string verb = unknown_verb(); !verb.empty()) {
      message = no_such_verb(options.command, verb);
    } else if (app != nullptr && app->get_require_subcommand_min() > 0) {
      message = fmt::format("which command? {}", commands_within(options.command));
    }
  }
  const std::string topic = "esker " + options.command + (app == nullptr ? "" : " ") + "--help";
  return out.fail("", fmt::format("{} (see `{}`)", message, topic));
}

std::variant<Invocation, int> Parser::parse(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (!words.empty() && words.front() == "__complete") {
    Output out({});
    out.text(complete({words.begin() + 1, words.end()}));
    return out.finish(code(Exit::ok));
  }
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  try {
    // CLI11 takes its words from the back.
    guard_words(words);
    app_.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    return invocation();
  } catch (const CLI::CallForHelp& help) {
    const CLI::App* app = chosen();
    if (finish_.count(app) == 0 && !unknown_verb().empty()) return usage_error(help, json);
    Output out({});
    out.text((app == nullptr ? app_ : *app).help());
    return out.finish(code(Exit::ok));
  } catch (const CLI::ParseError& error) {
    return usage_error(error, json);
  }
}

std::variant<Invocation, int> parse_args(int argc, const char* const* argv) {
  return Parser().parse(argc, argv);
}

}  // namespace esker::cli
