#include "args_parser.hpp"
#include "verbs.hpp"

namespace esker::cli {

namespace {

constexpr char guard_mark = '\x01';

}  // namespace

void guard_words(std::vector<std::string>& words) {
  for (std::string& word : words) {
    const bool list = word.starts_with('[') && word.ends_with(']');
    if (list || word.starts_with(guard_mark)) word = guard_mark + word;
  }
}

void unguard_values(CLI::App* app) {
  for (CLI::Option* option : app->get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    option->transform(
        [](const std::string& value) {
          return value.starts_with(guard_mark) ? value.substr(1) : value;
        },
        "");
  }
}

// The parts that several verbs share.

void Parser::add_common(CLI::App* app) {
  const char* group = "Common options";
  app->add_option("-s,--store", sources_.option, "The store, in place of the operand")
      ->option_text("STORE")
      ->group(group);
  app->add_flag("--json", output_.json, "Answer with one JSON document")->group(group);
  app->add_flag("-q,--quiet", output_.quiet, "No remarks, no progress")->group(group);
  app->add_flag("--no-progress", output_.no_progress, "No progress, on a terminal either")
      ->group(group);
  app->add_flag("--bytes", output_.raw_bytes, "Print sizes as plain bytes")->group(group);
  add_choice<ColorWhen>(
      app, "--color", output_.color,
      {{"auto", ColorWhen::automatic}, {"always", ColorWhen::always}, {"never", ColorWhen::never}},
      "auto, always or never")
      ->option_text("WHEN")
      ->group(group);
  app->set_help_flag("-h,--help", "Show this help")->group(group);
}

void Parser::add_store(CLI::App* app, std::string& store) { app->add_option("STORE", store); }

CLI::Option* Parser::add_operands(CLI::App* app) {
  return app->add_option_function<Words>("OPERANDS", [](const Words&) {});
}

void Parser::add_format(CLI::App* app, std::string& format, const char* text) {
  app->add_option("--format", format, text)
      ->check(CLI::IsMember({"esnap", "llama"}))
      ->option_text("NAME");
}

void Parser::add_model(CLI::App* app, ModelArgs& model) {
  app->add_option("--model", model.entries,
                  "A fact that changes KV bytes, such as name=llama-8b; repeatable")
      ->option_text("KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("--model-file", model.file, "The model's file: its content is its identity")
      ->option_text("GGUF");
}

void Parser::add_namespace(CLI::App* app, std::string& name_space) {
  app->add_option_function<std::string>(
         "--namespace",
         [&name_space](const std::string& text) {
           name_space = value_or_throw(parse_namespace(text));
         },
         "The root of the path: a tenant, an adapter; text or 0x and hex")
      ->option_text("NAME");
}

void Parser::add_prompt(CLI::App* app, PromptArgs& prompt) {
  app->add_option("--ids", prompt.ids_file,
                  "Token ids: a JSON list, numbers in text, or raw int32; - is standard input")
      ->option_text("FILE");
  app->add_option("--first", prompt.first, "Only the first N tokens")
      ->option_text("N")
      ->check(CLI::Range(1U, UINT32_MAX));
  add_namespace(app, prompt.name_space);
}

void Parser::add_change(CLI::App* app, ChangeArgs& change) {
  app->add_flag("-n,--dry-run", change.dry_run, "Say what would go, change nothing");
  app->add_flag("-y,--yes", change.assume_yes, "Do not ask, even on a terminal");
}

void Parser::add_session(CLI::App* app, std::string& session, const char* text) {
  const auto read = [&session](const std::string& name) {
    // An empty variable of a script must not turn into a command without a session.
    if (name.empty()) throw CLI::ValidationError("--session", "the name is empty");
    session = name;
  };
  app->add_option_function<std::string>("--session", read, text)->option_text("NAME");
}

CLI::App* Parser::verb(std::string_view name, CLI::App* parent) {
  const Verb* text = find_verb(name);
  const std::string own(name.substr(name.rfind(' ') + 1));  // "ls" of "session ls"
  CLI::App* app =
      (parent == nullptr ? &app_ : parent)->add_subcommand(own, std::string(text->summary));
  if (!text->alias.empty()) app->alias(std::string(text->alias));
  app->group(std::string(text->group));
  app->footer(std::string(text->examples));
  return app;
}

void Parser::finish(CLI::App* app, Finish make) {
  add_common(app);  // last, for the help
  unguard_values(app);
  finish_[app] = std::move(make);
}

}  // namespace esker::cli
