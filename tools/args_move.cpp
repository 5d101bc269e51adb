#include "args_parser.hpp"

namespace esker::cli {

void Parser::add_move() {
  add_import();
  add_export();
}

void Parser::add_import() {
  CLI::App* app = verb("import");
  auto args = std::make_shared<ImportArgs>();
  const CLI::Option* operands = add_operands(app);
  add_format(app, args->format);
  add_model(app, args->model);
  CLI::Option* assume = app->add_flag("--assume-model", args->assume_model,
                                      "Take for granted that the file is of the store's model");
  assume->excludes(app->get_option("--model"))->excludes(app->get_option("--model-file"));
  add_namespace(app, args->name_space);
  add_session(app, args->session.name,
              "Keep the file's sequence as this session, new or continued");
  add_session_change(app, args->session);
  finish(app, [this, args, operands]() -> Command {
    Operands settled = value_or_throw(settle_file(operands->results(), sources_));
    args->store = std::move(settled.store);
    args->file = std::move(settled.rest.front());
    return *args;
  });
}

void Parser::add_session_change(CLI::App* app, SessionChange& session) {
  CLI::Option* needed = app->get_option("--session");
  app->add_option("--set", session.entries,
                  "A note on the session, such as user=7; an empty value removes it; repeatable")
      ->option_text("KEY=VALUE")
      ->allow_extra_args(false)
      ->needs(needed);
  const auto read_time = [&session](const std::string& text) {
    session.time_to_live_s = text == "never" ? 0 : value_or_throw(parse_duration(text));
  };
  app->add_option_function<std::string>("--ttl", read_time,
                                        "The session is over so long after its last use; or never")
      ->option_text("TIME")
      ->needs(needed);
  app->add_option("--priority", session.priority,
                  "Which kept sessions come first when not all have room (0)")
      ->option_text("N")
      ->needs(needed);
}

void Parser::add_export() {
  CLI::App* app = verb("export");
  auto args = std::make_shared<ExportArgs>();
  const CLI::Option* operands = add_operands(app);
  args->format = "llama";
  app->add_option("--format", args->format,
                  "llama (as --like is), llama-session or safetensors, for Python")
      ->check(CLI::IsMember({"llama", "llama-session", "safetensors"}))
      ->option_text("NAME");
  app->add_option("--like", args->like, "A file of the server that is to read the result")
      ->option_text("FILE");
  app->add_option("--arch", args->architecture, "The model's architecture, for a session file")
      ->option_text("NAME");
  add_prompt(app, args->prompt);
  add_session(app, args->session, "What is reusable of this session, in place of PATH");
  for (const char* other : {"--ids", "--namespace"}) {
    app->get_option("--session")->excludes(app->get_option(other));
  }
  app->add_option("-o,--output", args->output, "The file to write; - is a pipe")
      ->option_text("FILE")
      ->required();
  app->add_flag("-f,--force", args->force, "Replace the file when it exists");
  finish(app, [this, args, operands]() -> Command {
    const char* by = !args->prompt.ids_file.empty() ? "--ids" : "";
    if (!args->session.empty()) by = "--session";
    Operands settled = value_or_throw(settle_prefix(operands->results(), by, sources_));
    args->store = std::move(settled.store);
    if (!settled.rest.empty()) args->path = std::move(settled.rest.front());
    return *args;
  });
}

}  // namespace esker::cli
