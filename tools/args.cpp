#include "args.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <esker/geometry.hpp>
#include <functional>
#include <map>
#include <memory>

#include "operands.hpp"
#include "units.hpp"
#include "verbs.hpp"

namespace esker::cli {

namespace {

constexpr std::uint32_t max_seats = 4095;
constexpr int usage_code = code(Exit::failed);

template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw CLI::ParseError(result.error().message, usage_code);
  return std::move(*result);
}

/// Examples first: they are what people look for.
class HelpText : public CLI::Formatter {
 public:
  HelpText() { column_width(30); }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub) return make_expanded(app);
    std::string text = fmt::format("{}\n\nExamples:\n{}\n{}\n{}{}", app->get_description(),
                                   app->get_footer(), make_usage(app, std::move(name)),
                                   make_groups(app, mode), make_subcommands(app, mode));
    for (std::size_t at = 0; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
    return text.substr(0, text.find_last_not_of('\n') + 1) + '\n';
  }

  std::string make_usage(const CLI::App* app, std::string) const override {
    return usage_of(app->get_name());
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_option_text().empty() ? "" : ' ' + option->get_option_text();
  }
};

class Parser {
 public:
  Parser();
  std::variant<Invocation, int> parse(int argc, const char* const* argv);

 private:
  using Finish = std::function<Command()>;

  CLI::App* verb(std::string_view name);
  void finish(CLI::App* app, Finish make);
  void add_common(CLI::App* app);
  void add_store(CLI::App* app, std::string& store);
  void add_format(CLI::App* app, std::string& format);
  void add_model(CLI::App* app, ModelArgs& model);
  void add_prompt(CLI::App* app, PromptArgs& prompt);
  void add_namespace(CLI::App* app, std::string& name_space);
  void add_change(CLI::App* app, ChangeArgs& change);
  template <class Args>
  void finish_with_store(CLI::App* app, std::shared_ptr<Args> args);
  template <class Args>
  void add_plain(std::string_view name);

  void add_look();
  void add_ls();
  void add_match();
  void add_log();
  void add_create();
  void add_rm();
  void add_evict();
  void add_trim();
  void add_destroy();
  void add_import();
  void add_export();

  [[nodiscard]] Invocation invocation();
  [[nodiscard]] int usage_error(const CLI::ParseError& error, bool json);
  [[nodiscard]] std::string unknown_verb() const;

  CLI::App app_;
  std::map<const CLI::App*, Finish> finish_;
  OutputOptions output_;
  StoreSources sources_;
  bool wants_version_ = false;
};

template <class Bytes>
CLI::Option* add_bytes(CLI::App* app, const char* name, Bytes& value, const char* text) {
  const auto read = [name, &value](const std::string& word) {
    const auto bytes = parse_bytes(word);
    if (!bytes) throw CLI::ValidationError(name, bytes.error().message);
    value = *bytes;
  };
  return app->add_option_function<std::string>(name, read, text)->option_text("SIZE");
}

template <class Choice>
CLI::Option* add_choice(CLI::App* app, const char* name, Choice& value,
                        std::map<std::string, Choice> choices, const char* text) {
  return app->add_option_function<std::string>(
      name,
      [name, &value, choices = std::move(choices)](const std::string& word) {
        const auto found = choices.find(word);
        if (found == choices.end()) {
          std::string expected;
          for (const auto& [known, unused] : choices) expected += ' ' + known;
          throw CLI::ValidationError(name, fmt::format("\"{}\" is none of:{}", word, expected));
        }
        value = found->second;
      },
      text);
}

/// A count within a range, both ends included.
CLI::Option* add_count(CLI::App* app, const char* name, std::uint32_t& value, std::uint32_t most,
                       const char* text) {
  return app->add_option(name, value, text)->check(CLI::Range(1U, most))->option_text("N");
}

// The parts that several verbs share.

void Parser::add_common(CLI::App* app) {
  const char* group = "Common options";
  app->add_option("-s,--store", sources_.option, "The store, in place of the operand")
      ->option_text("STORE")
      ->group(group);
  app->add_flag("--json", output_.json, "Answer with one JSON document")->group(group);
  app->add_flag("-q,--quiet", output_.quiet, "No remarks, no progress")->group(group);
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

void Parser::add_format(CLI::App* app, std::string& format) {
  format = "llama";
  app->add_option("--format", format, "llama: sequence files of llama.cpp")
      ->check(CLI::IsMember({"llama"}))
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

CLI::App* Parser::verb(std::string_view name) {
  const Verb* text = find_verb(name);
  CLI::App* app = app_.add_subcommand(std::string(name), std::string(text->summary));
  app->group(std::string(text->group));
  app->footer(std::string(text->examples));
  return app;
}

void Parser::finish(CLI::App* app, Finish make) {
  add_common(app);  // last, for the help
  finish_[app] = std::move(make);
}

template <class Args>
void Parser::finish_with_store(CLI::App* app, std::shared_ptr<Args> args) {
  finish(app, [this, args]() -> Command {
    args->store = value_or_throw(settle_store(args->store, sources_));
    return *args;
  });
}

/// A verb that takes a store and nothing else.
template <class Args>
void Parser::add_plain(std::string_view name) {
  CLI::App* app = verb(name);
  auto args = std::make_shared<Args>();
  add_store(app, args->store);
  finish_with_store(app, args);
}

// The verbs.

void Parser::add_look() {
  add_plain<InfoArgs>("info");
  add_ls();
  add_match();
  add_plain<StatArgs>("stat");
  add_plain<PsArgs>("ps");
  add_log();
}

void Parser::add_ls() {
  CLI::App* app = verb("ls");
  auto args = std::make_shared<LsArgs>();
  add_store(app, args->store);
  add_choice<SortBy>(app, "--sort", args->sort,
                     {{"age", SortBy::age}, {"tokens", SortBy::tokens}, {"bytes", SortBy::bytes}},
                     "What comes first: age (last used), tokens or bytes")
      ->option_text("ORDER");
  finish(app, [this, args]() -> Command {
    const auto store = settle_store(args->store, sources_);
    const bool none = args->store.empty() && sources_.option.empty();
    if (!store && !none) throw CLI::ParseError(store.error().message, usage_code);
    args->store = store ? *store : "";
    return *args;
  });
}

void Parser::add_match() {
  CLI::App* app = verb("match");
  auto args = std::make_shared<MatchArgs>();
  add_store(app, args->store);
  add_prompt(app, args->prompt);
  app->get_option("--ids")->required();
  finish_with_store(app, args);
}

void Parser::add_log() {
  CLI::App* app = verb("log");
  auto args = std::make_shared<LogArgs>();
  add_store(app, args->store);
  app->add_flag("-f,--follow", args->follow, "Go on with what happens next");
  app->add_option("--since", args->since, "Only events after this sequence number")
      ->option_text("N");
  finish_with_store(app, args);
}

void Parser::add_create() {
  CLI::App* app = verb("create");
  auto args = std::make_shared<CreateArgs>();
  add_store(app, args->store);
  constexpr std::uint32_t most = 1U << 16;
  const std::vector<CLI::Option*> shape{
      add_count(app, "--layers", args->layers, Geometry::max_layers, "Layers that keep KV rows"),
      add_count(app, "--kv-heads", args->kv_heads, most, "KV heads per layer"),
      add_count(app, "--head-dim", args->head_dim, most, "Elements per head"),
      app->add_option("--dtype", args->dtype, "f32, f16, bf16, f8_e4m3, f8_e5m2, i8, q8_0 or q4_0")
          ->option_text("TYPE")};
  CLI::Option* like = app->add_option("--like", args->like,
                                      "Take the geometry (not the model) from a llama.cpp file");
  like->option_text("FILE");
  for (CLI::Option* option : shape) like->excludes(option);
  add_count(app, "--block-tokens", args->block_tokens, Geometry::max_block_tokens,
            "Tokens per block, 1 to 1024 (32)");
  add_model(app, args->model);
  add_bytes(app, "--capacity", args->capacity_bytes,
            "Cap of all files (a quarter of the free space, at most 64 GiB)");
  app->add_flag("--group", args->group, "Let the directory's group use the store too");
  add_count(app, "--seats", args->seats, max_seats, "Handles open at a time, 1 to 4095 (128)");
  add_bytes(app, "--segment-size", args->segment_bytes,
            "Size of one segment file; for very small stores")
      ->group("Advanced");
  finish(app, [this, args, shape, like]() -> Command {
    for (const CLI::Option* option : shape) {
      if (like->count() == 0 && option->count() == 0) {
        throw CLI::ParseError(
            fmt::format("{} is missing: give the geometry by --layers, --kv-heads, --head-dim and "
                        "--dtype, or take it from a file by --like",
                        option->get_name()),
            usage_code);
      }
    }
    args->store = value_or_throw(settle_store(args->store, sources_));
    return *args;
  });
}

void Parser::add_rm() {
  CLI::App* app = verb("rm");
  auto args = std::make_shared<RmArgs>();
  auto operands = std::make_shared<std::vector<std::string>>();
  app->add_option("OPERANDS", *operands);
  add_change(app, args->change);
  finish(app, [this, args, operands]() -> Command {
    Operands settled = value_or_throw(settle_paths(*operands, sources_));
    args->store = std::move(settled.store);
    args->paths = std::move(settled.rest);
    return *args;
  });
}

void Parser::add_evict() {
  CLI::App* app = verb("evict");
  auto args = std::make_shared<EvictArgs>();
  add_store(app, args->store);
  CLI::Option* to = add_bytes(app, "--to", args->to_bytes, "Keep at most SIZE of blocks");
  CLI::Option* age = app->add_option_function<std::string>(
      "--older-than",
      [args](const std::string& text) {
        args->older_than_s = value_or_throw(parse_duration(text));
      },
      "Free what was last used before, such as 12h or 7d");
  age->option_text("TIME")->excludes(to);
  add_change(app, args->change);
  finish(app, [this, args]() -> Command {
    if (!args->to_bytes && !args->older_than_s) {
      throw CLI::ParseError("how much? Give --to SIZE or --older-than TIME", usage_code);
    }
    args->store = value_or_throw(settle_store(args->store, sources_));
    return *args;
  });
}

void Parser::add_trim() {
  CLI::App* app = verb("trim");
  auto args = std::make_shared<TrimArgs>();
  add_store(app, args->store);
  add_bytes(app, "--keep-free", args->keep_free_bytes, "Stop when the file system has SIZE free")
      ->required();
  add_change(app, args->change);
  finish_with_store(app, args);
}

void Parser::add_destroy() {
  CLI::App* app = verb("destroy");
  auto args = std::make_shared<DestroyArgs>();
  add_store(app, args->store);
  add_change(app, args->change);
  finish_with_store(app, args);
}

void Parser::add_import() {
  CLI::App* app = verb("import");
  auto args = std::make_shared<ImportArgs>();
  auto operands = std::make_shared<std::vector<std::string>>();
  app->add_option("OPERANDS", *operands);
  add_format(app, args->format);
  add_model(app, args->model);
  CLI::Option* assume = app->add_flag("--assume-model", args->assume_model,
                                      "Take for granted that the file is of the store's model");
  assume->excludes(app->get_option("--model"))->excludes(app->get_option("--model-file"));
  add_namespace(app, args->name_space);
  finish(app, [this, args, operands]() -> Command {
    Operands settled = value_or_throw(settle_file(*operands, sources_));
    args->store = std::move(settled.store);
    args->file = std::move(settled.rest.front());
    return *args;
  });
}

void Parser::add_export() {
  CLI::App* app = verb("export");
  auto args = std::make_shared<ExportArgs>();
  auto operands = std::make_shared<std::vector<std::string>>();
  app->add_option("OPERANDS", *operands);
  add_format(app, args->format);
  app->add_option("--like", args->like, "A file of the server that is to read the result")
      ->option_text("FILE")
      ->required();
  add_prompt(app, args->prompt);
  app->add_option("-o,--output", args->output, "The file to write; - is a pipe")
      ->option_text("FILE")
      ->required();
  app->add_flag("-f,--force", args->force, "Replace the file when it exists");
  finish(app, [this, args, operands]() -> Command {
    const bool by_ids = !args->prompt.ids_file.empty();
    Operands settled = value_or_throw(settle_prefix(*operands, by_ids, sources_));
    args->store = std::move(settled.store);
    if (!by_ids) args->path = std::move(settled.rest.front());
    return *args;
  });
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
  add_plain<VerifyArgs>("verify");
  add_plain<ReapArgs>("reap");
  add_import();
  add_export();
  add_create();
  add_rm();
  add_evict();
  add_trim();
  add_destroy();
}

std::string Parser::unknown_verb() const {
  for (const std::string& word : app_.remaining()) {
    if (!word.starts_with('-')) return word;
  }
  return "";
}

Invocation Parser::invocation() {
  const auto chosen = app_.get_subcommands();
  if (!chosen.empty()) {
    output_.command = chosen.front()->get_name();
    Command command = finish_.at(chosen.front())();
    return {output_, std::move(command)};
  }
  output_.command = wants_version_ ? "version" : "overview";
  return {output_, wants_version_ ? Command(VersionArgs{}) : Command(OverviewArgs{})};
}

int Parser::usage_error(const CLI::ParseError& error, bool json) {
  const auto chosen = app_.get_subcommands();
  OutputOptions options = output_;
  options.json = json;
  options.command = chosen.empty() ? "" : chosen.front()->get_name();
  Output out(options);
  std::string message = error.what();
  if (const std::string verb = unknown_verb(); chosen.empty() && !verb.empty()) {
    message = no_such_verb(verb);
  }
  const std::string topic =
      chosen.empty() ? "esker --help" : "esker " + options.command + " --help";
  return out.fail("", fmt::format("{} (see `{}`)", message, topic));
}

std::variant<Invocation, int> Parser::parse(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  try {
    // CLI11 takes its words from the back.
    app_.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    return invocation();
  } catch (const CLI::CallForHelp& help) {
    const auto chosen = app_.get_subcommands();
    if (chosen.empty() && !unknown_verb().empty()) return usage_error(help, json);
    Output out({});
    out.text(chosen.empty() ? app_.help() : chosen.front()->help());
    return out.finish(code(Exit::ok));
  } catch (const CLI::ParseError& error) {
    return usage_error(error, json);
  }
}

}  // namespace

std::variant<Invocation, int> parse_args(int argc, const char* const* argv) {
  return Parser().parse(argc, argv);
}

}  // namespace esker::cli
