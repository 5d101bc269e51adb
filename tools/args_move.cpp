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
  add_format(app, args->format,
             "esnap: snapshots; llama: sequence and session files (the file tells)");
  add_model(app, args->model);
  CLI::Option* assume = app->add_flag("--assume-model", args->assume_model,
                                      "Take for granted that the file is of the store's model");
  assume->excludes(app->get_option("--model"))->excludes(app->get_option("--model-file"));
  add_namespaces(app, args->namespaces,
                 "The root of the path; of a snapshot, a tenant's name; repeatable");
  add_session(app, args->session.name,
              "Keep the file's sequence as this session, new or continued");
  add_session_change(app, args->session);
  app->add_flag("--create", args->snapshot.create, "Make the store, when it is not there");
  add_snapshot_import(app, args->snapshot);
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

namespace {

/// The operand "-" at the end is standard output, as `-o -` is.
void take_dash(ExportArgs& args, std::vector<std::string>& operands) {
  if (operands.empty() || operands.back() != "-") return;
  if (!args.output.empty()) {
    throw CLI::ParseError(
        fmt::format("two outputs: - as operand and {} with -o; give one of them", args.output),
        usage_code);
  }
  args.output = "-";
  operands.pop_back();
}

Operands settle_sequence(const ExportArgs& args, std::vector<std::string> operands,
                         const StoreSources& sources) {
  if (args.sessions.size() > 1) {
    throw CLI::ParseError("such a file holds one sequence: give one --session", usage_code);
  }
  if (!args.sessions.empty() && !args.prompt.ids_file.empty()) {
    throw CLI::ParseError("both --session and --ids: give one of them", usage_code);
  }
  if (!args.sessions.empty() && !args.prompt.name_space.empty()) {
    throw CLI::ParseError("both --session and --namespace: a session has a namespace of its own",
                          usage_code);
  }
  const char* by = !args.prompt.ids_file.empty() ? "--ids" : "";
  if (!args.sessions.empty()) by = "--session";
  return value_or_throw(settle_prefix(std::move(operands), by, sources));
}

Operands settle_snapshot(const ExportArgs& args, std::vector<std::string> operands,
                         const StoreSources& sources) {
  const bool ids = !args.prompt.ids_file.empty();
  if (!ids && (args.prompt.first || !args.prompt.name_space.empty())) {
    throw CLI::ParseError("--first and --namespace belong to --ids, which is missing", usage_code);
  }
  return value_or_throw(settle_any_paths(std::move(operands), sources));
}

}  // namespace

void Parser::add_export() {
  CLI::App* app = verb("export");
  auto args = std::make_shared<ExportArgs>();
  const CLI::Option* operands = add_operands(app);
  app->add_option("--format", args->format,
                  "esnap: a snapshot (default); llama (as --like is), llama-session or "
                  "safetensors: one sequence")
      ->check(CLI::IsMember({"esnap", "llama", "llama-session", "safetensors"}))
      ->option_text("NAME");
  CLI::Option* like = app->add_option(
      "--like", args->like, "A file of the server that is to read the result; implies llama");
  like->option_text("FILE");
  app->add_option("--arch", args->architecture, "The model's architecture, for a session file")
      ->option_text("NAME");
  add_prompt(app, args->prompt);
  add_names(app, args->sessions, "These sessions: all that is stored of them; repeatable");
  const std::vector<CLI::Option*> codec = add_codec(app, args->codec);
  app->add_option("-o,--output", args->output, "The file to write; - is a pipe")
      ->option_text("FILE");
  app->add_flag("-f,--force", args->force, "Replace the file when it exists");
  finish(app, [this, args, operands, codec]() -> Command {
    std::vector<std::string> words = operands->results();
    take_dash(*args, words);
    if (args->format.empty()) args->format = args->like.empty() ? "esnap" : "llama";
    const bool snapshot = args->format == "esnap";
    if (snapshot && !(args->like.empty() && args->architecture.empty())) {
      throw CLI::ParseError("--like and --arch are for files of llama.cpp: give --format, or none",
                            usage_code);
    }
    for (const CLI::Option* option : codec) {
      if (!snapshot && option->count() > 0) {
        throw CLI::ParseError(
            fmt::format("{} is for snapshots, and {} is none", option->get_name(), args->format),
            usage_code);
      }
    }
    if (args->output.empty()) {
      throw CLI::ParseError("where to? Give -o FILE, or - for a pipe", usage_code);
    }
    check_codec(args->codec);
    Operands settled = snapshot ? settle_snapshot(*args, std::move(words), sources_)
                                : settle_sequence(*args, std::move(words), sources_);
    args->store = std::move(settled.store);
    args->paths = std::move(settled.rest);
    return *args;
  });
}

}  // namespace esker::cli
