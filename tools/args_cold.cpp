#include "args_parser.hpp"

namespace esker::cli {

void Parser::add_cold() {
  add_freeze();
  add_thaw();
}

void Parser::add_freeze() {
  constexpr int max_level = 19;
  constexpr std::uint32_t max_threads = 256;
  CLI::App* app = verb("freeze");
  auto args = std::make_shared<FreezeArgs>();
  add_store(app, args->store);
  app->add_option_function<std::string>(
         "--older-than",
         [args](const std::string& text) {
           args->older_than_s = value_or_throw(parse_duration(text));
         },
         "What was last used before, such as 12h (7d)")
      ->option_text("TIME");
  add_bytes(app, "--most", args->most_bytes, "At most SIZE of blocks, the oldest first");
  add_choice<Compression>(
      app, "--codec", args->compression,
      {{"raw", Compression::raw}, {"lz4", Compression::lz4}, {"zstd", Compression::zstd}},
      "raw, lz4 (fast, default) or zstd (small)")
      ->option_text("NAME");
  app->add_option("--level", args->level, "How hard zstd tries, 1 to 19 (3)")
      ->check(CLI::Range(1, max_level))
      ->option_text("N");
  app->add_option("--threads", args->threads, "Threads that compress (1)")
      ->check(CLI::Range(1U, max_threads))
      ->option_text("N");
  app->add_flag("-n,--dry-run", args->dry_run, "Say what would be frozen, change nothing");
  finish(app, [this, args]() -> Command {
    if (args->level != 0 && args->compression != Compression::zstd) {
      throw CLI::ParseError("--level is of zstd: give --codec zstd too", usage_code);
    }
    args->store = value_or_throw(settle_store(args->store, sources_));
    return *args;
  });
}

void Parser::add_thaw() {
  CLI::App* app = verb("thaw");
  auto args = std::make_shared<ThawArgs>();
  add_store(app, args->store);
  add_prompt(app, args->prompt);
  add_session(app, args->session, "The tokens of this session, in place of a prompt");
  for (const char* option : {"--ids", "--first", "--namespace"}) {
    app->get_option("--session")->excludes(app->get_option(option));
  }
  finish(app, [this, args]() -> Command {
    if (args->session.empty() && args->prompt.ids_file.empty()) {
      throw CLI::ParseError("what? Give a prompt by --ids FILE, or --session NAME", usage_code);
    }
    args->store = value_or_throw(settle_store(args->store, sources_));
    return *args;
  });
}

}  // namespace esker::cli
