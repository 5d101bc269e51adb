#include <charconv>

#include "args_parser.hpp"

namespace esker::cli {

namespace {

/// "A:B", "A:" and ":B" are positions; the end is not included.
TokenRange parse_range(const std::string& text) {
  TokenRange range;
  const auto number = [&](std::string_view word, std::uint32_t& value) {
    if (word.empty()) return true;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size();
  };
  const std::size_t colon = text.find(':');
  const bool read = colon != std::string::npos &&
                    number(std::string_view(text).substr(0, colon), range.begin) &&
                    number(std::string_view(text).substr(colon + 1), range.end);
  if (!read || range.empty()) {
    throw CLI::ValidationError(
        "--range", fmt::format("\"{}\": expected A:B, the tokens from A up to before B", text));
  }
  return range;
}

void add_output(CLI::App* app, bool& force) {
  app->add_flag("-f,--force", force, "Replace the file when it exists");
}

}  // namespace

void Parser::add_convert_verbs() {
  add_cat();
  add_convert();
}

void Parser::add_cat() {
  CLI::App* app = verb("cat");
  auto args = std::make_shared<CatArgs>();
  const CLI::Option* operands = add_operands(app);
  app->add_option("--layer", args->layer, "The layer, from 0 on")->option_text("N")->required();
  add_choice<Plane>(app, "--plane", args->plane, {{"key", Plane::key}, {"value", Plane::value}},
                    "key or value")
      ->option_text("PLANE")
      ->required();
  app->add_option_function<std::string>(
         "--range", [args](const std::string& text) { args->range = parse_range(text); },
         "Only the tokens from A up to before B")
      ->option_text("A:B");
  add_prompt(app, args->prompt);
  add_session(app, args->session, "The tokens of this session, in place of PATH");
  app->get_option("--session")->excludes(app->get_option("--ids"));
  app->add_option("-o,--output", args->output, "The file to write; - (the default) is a pipe")
      ->option_text("FILE");
  add_output(app, args->force);
  finish(app, [this, args, operands]() -> Command {
    const char* by = !args->prompt.ids_file.empty() ? "--ids" : "";
    if (!args->session.empty()) by = "--session";
    Operands settled = value_or_throw(settle_optional(operands->results(), by, sources_));
    args->store = std::move(settled.store);
    if (!settled.rest.empty()) args->path = std::move(settled.rest.front());
    return *args;
  });
}

void Parser::add_convert() {
  CLI::App* app = verb("convert");
  auto args = std::make_shared<ConvertArgs>();
  const CLI::Option* operands = add_operands(app);
  const auto known = CLI::IsMember({"llama", "llama-session", "esnap", "store", "safetensors"});
  app->add_option("--from", args->from, "What IN is; told by its content when not given")
      ->check(CLI::IsMember({"llama", "llama-session", "esnap", "store"}))
      ->option_text("KIND");
  app->add_option("--to", args->to,
                  "What OUT is to be: llama, llama-session, esnap, store or safetensors")
      ->check(known)
      ->option_text("KIND");
  app->add_option("--like", args->like, "A file of the server that is to read the result")
      ->option_text("FILE");
  app->add_option("--arch", args->architecture, "The model's architecture, for a session file")
      ->option_text("NAME");
  app->add_option("--file-version", args->file_version,
                  "Version of the result: 3 or 4, for a session file 10 or 11")
      ->option_text("N");
  app->add_option("--path", args->path, "Which path of a snapshot or store")->option_text("PATH");
  add_session(app, args->session, "Which session of it, or what to call the new one");
  add_prompt(app, args->prompt);
  add_model(app, args->model);
  app->add_flag("--assume-model", args->assume_model,
                "Take for granted that the file is of the store's model");
  for (const char* other : {"--ids", "--session"}) {
    app->get_option("--path")->excludes(app->get_option(other));
  }
  add_output(app, args->force);
  finish(app, [this, args, operands]() -> Command {
    const auto& words = operands->results();
    if (!sources_.option.empty() || words.size() != 2) {
      throw CLI::ParseError(
          fmt::format("expected IN OUT, found {}{}", format_items(words.size(), "operand"),
                      sources_.option.empty() ? "" : " and -s"),
          usage_code);
    }
    args->input = words.front();
    args->output = words.back();
    return *args;
  });
}

}  // namespace esker::cli
