#include "args_parser.hpp"

namespace esker::cli {

namespace {

void read_budget(const std::string& word, ConfigArgs& args) {
  args.sets_budget = true;
  args.budget_bytes.reset();
  if (word == "none") return;
  const auto bytes = parse_bytes(word);
  if (!bytes) throw CLI::ValidationError("--budget", bytes.error().message + ", or none");
  if (*bytes == 0) throw CLI::ValidationError("--budget", "0 leaves room for no store; or none");
  args.budget_bytes = *bytes;
}

void read_keep_free(const std::string& word, ConfigArgs& args) {
  constexpr std::uint64_t most_percent = 100;
  if (word == "default") {
    args.keep_free = KeepFree{};
  } else if (word.ends_with('%')) {
    std::uint64_t percent = 0;
    if (!CLI::detail::lexical_cast(word.substr(0, word.size() - 1), percent) ||
        percent > most_percent) {
      throw CLI::ValidationError("--keep-free", word + ": expected 0% to 100%");
    }
    args.keep_free = {KeepFree::Kind::percent, percent};
  } else {
    const auto bytes = parse_bytes(word);
    if (!bytes) {
      throw CLI::ValidationError("--keep-free",
                                 bytes.error().message + ", or a share such as 10%, or default");
    }
    args.keep_free = {KeepFree::Kind::bytes, *bytes};
  }
}

}  // namespace

void Parser::add_house() {
  add_resize();
  add_maintain();
  add_config();
}

void Parser::add_config() {
  CLI::App* app = verb("config");
  auto args = std::make_shared<ConfigArgs>();
  app->add_option_function<std::string>(
         "--budget", [args](const std::string& word) { read_budget(word, *args); },
         "Most that all stores of the home may take together, or none")
      ->option_text("SIZE");
  app->add_option_function<std::string>(
         "--keep-free", [args](const std::string& word) { read_keep_free(word, *args); },
         "What growth leaves free of the disk: a size, 10%, or default")
      ->option_text("SIZE");
  finish(app, [this, args]() -> Command {
    if (!sources_.option.empty()) {
      throw CLI::ParseError("-s: the settings are those of the home, not of a store", usage_code);
    }
    return *args;
  });
}

void Parser::add_resize() {
  CLI::App* app = verb("resize");
  auto args = std::make_shared<ResizeArgs>();
  add_store(app, args->store);
  add_bytes(app, "--capacity", args->capacity_bytes, "The new cap of all files");
  add_bytes(app, "--cold", args->cold_bytes, "The part of it for cold blocks; 0 for none");
  add_change(app, args->change);
  finish(app, [this, args]() -> Command {
    if (!args->capacity_bytes && !args->cold_bytes) {
      throw CLI::ParseError("to what size? Give --capacity SIZE, --cold SIZE or both", usage_code);
    }
    args->store = value_or_throw(settle_store(args->store, sources_));
    return *args;
  });
}

void Parser::add_maintain() {
  CLI::App* app = verb("maintain");
  auto args = std::make_shared<MaintainArgs>();
  const CLI::Option* operands = add_operands(app);
  auto all = std::make_shared<bool>(false);
  app->add_flag("--all", *all, "All stores of the home, and the home itself");
  app->add_option_function<std::string>(
         "--freeze-after",
         [args](const std::string& text) {
           args->freeze_after_s = value_or_throw(parse_duration(text));
         },
         "Compress what was last used before, where a store has a cold share (7d)")
      ->option_text("TIME");
  app->add_flag("-n,--dry-run", args->dry_run, "Say what would be done, change nothing");
  finish(app, [this, args, operands, all]() -> Command {
    args->stores = operands->results();
    const std::string& given = sources_.option.empty() ? sources_.environment : sources_.option;
    if (*all && (!args->stores.empty() || !sources_.option.empty())) {
      throw CLI::ParseError("--all and a store exclude each other", usage_code);
    }
    if (!args->stores.empty() && !sources_.option.empty()) {
      throw CLI::ParseError("stores as operands and with -s: give the one or the other",
                            usage_code);
    }
    if (!*all && args->stores.empty() && !given.empty()) args->stores = {given};
    return *args;
  });
}

}  // namespace esker::cli
