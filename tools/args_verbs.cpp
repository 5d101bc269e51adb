#include <esker/geometry.hpp>

#include "args_parser.hpp"

namespace esker::cli {

namespace {

constexpr std::uint32_t max_seats = 4095;

/// A count within a range, both ends included.
CLI::Option* add_count(CLI::App* app, const char* name, std::uint32_t& value, std::uint32_t most,
                       const char* text) {
  return app->add_option(name, value, text)->check(CLI::Range(1U, most))->option_text("N");
}

}  // namespace

void Parser::add_look() {
  add_plain<InfoArgs>("info");
  add_ls();
  add_match();
  add_stat();
  add_top();
  add_report();
  add_plain<PsArgs>("ps");
  add_log();
  add_plain<VerifyArgs>("verify");
  add_plain<ReapArgs>("reap");
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

void Parser::add_change_verbs() {
  add_create();
  add_rm();
  add_evict();
  add_trim();
  add_destroy();
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
          ->option_text("TYPE")
          ->type_name("{f32,f16,bf16,f8_e4m3,f8_e5m2,i8,q8_0,q4_0}")};
  CLI::Option* like = app->add_option("--like", args->like,
                                      "Take the geometry (not the model) from a llama.cpp file");
  like->option_text("FILE");
  for (CLI::Option* option : shape) like->excludes(option);
  add_count(app, "--block-tokens", args->block_tokens, Geometry::max_block_tokens,
            "Tokens per block, 1 to 1024 (32)");
  add_model(app, args->model);
  add_bytes(app, "--capacity", args->capacity_bytes,
            "Cap of all files (a quarter of the free space, at most 64 GiB)");
  add_bytes(app, "--cold", args->cold_bytes, "The part of it for cold blocks, see freeze (none)");
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
  const CLI::Option* operands = add_operands(app);
  add_change(app, args->change);
  finish(app, [this, args, operands]() -> Command {
    Operands settled = value_or_throw(settle_paths(operands->results(), sources_));
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

}  // namespace esker::cli
