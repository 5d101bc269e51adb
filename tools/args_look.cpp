#include <charconv>

#include "args_parser.hpp"

namespace esker::cli {

namespace {

/// Reads "250ms", "0.5s", "1s", "2m" or "1h" as milliseconds within a range.
std::uint64_t parse_interval(const char* option, std::string_view text, std::uint64_t least_ms,
                             std::uint64_t most_ms) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [name, ms] :
       {std::pair<std::string_view, double>{"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}}) {
    if (error != std::errc() || unit != name || !(value * ms <= static_cast<double>(most_ms)) ||
        !(value * ms >= static_cast<double>(least_ms))) {
      continue;
    }
    return static_cast<std::uint64_t>(value * ms);
  }
  throw CLI::ValidationError(
      option, fmt::format("\"{}\" is no length of time from {} ms to {} s: write it as 250ms, 1s "
                          "or 2m",
                          text, least_ms, most_ms / 1000));
}

CLI::Option* add_interval(CLI::App* app, const char* name, std::uint64_t& value_ms,
                          std::uint64_t most_ms, const char* text) {
  constexpr std::uint64_t least_ms = 50;
  const auto read = [name, &value_ms, most_ms](const std::string& word) {
    value_ms = parse_interval(name, word, least_ms, most_ms);
  };
  return app->add_option_function<std::string>(name, read, text)->option_text("TIME");
}

}  // namespace

/// For who takes one store, or all in the home: "" where none is given by any means.
template <class Args>
void Parser::settle_some(Args& args) const {
  const auto store = settle_store(args.store, sources_);
  const bool none = args.store.empty() && sources_.option.empty();
  if (!store && !none) throw CLI::ParseError(store.error().message, usage_code);
  args.store = store ? *store : "";
}

void Parser::add_stat() {
  CLI::App* app = verb("stat");
  auto args = std::make_shared<StatArgs>();
  add_store(app, args->store);
  CLI::Option* prometheus =
      app->add_flag("--prometheus", args->prometheus,
                    "Answer as a Prometheus collector reads it; without STORE of all in the home");
  app->add_option("-o,--output", args->output, "Put it in place of this file at once")
      ->option_text("FILE")
      ->needs(prometheus);
  finish(app, [this, args]() -> Command {
    if (args->prometheus && output_.json) {
      throw CLI::ParseError("--prometheus excludes --json", usage_code);
    }
    if (args->prometheus) {
      settle_some(*args);
    } else {
      args->store = value_or_throw(settle_store(args->store, sources_));
    }
    return *args;
  });
}

void Parser::add_top() {
  CLI::App* app = verb("top");
  auto args = std::make_shared<TopArgs>();
  add_store(app, args->store);
  add_interval(app, "--interval", args->interval_ms, 3'600'000, "Look so often (1s)");
  app->add_option("-n,--count", args->count, "End after N views; without a terminal 1")
      ->option_text("N")
      ->check(CLI::Range(1U, UINT32_MAX));
  finish(app, [this, args]() -> Command {
    settle_some(*args);
    return *args;
  });
}

void Parser::add_report() {
  CLI::App* app = verb("report");
  auto args = std::make_shared<ReportArgs>();
  add_store(app, args->store);
  app->add_option("-o,--output", args->output, "The page to write; - is a pipe")
      ->option_text("FILE")
      ->required();
  app->add_flag("-f,--force", args->force, "Replace the file when it exists");
  add_interval(app, "--watch", args->watch_ms, 24 * 3'600'000,
               "Watch hits and misses so long, then write the page");
  app->add_flag("--tokens", args->tokens, "Show token ids: they tell what was said");
  finish_with_store(app, args);
}

}  // namespace esker::cli
