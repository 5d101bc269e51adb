#include "args_parser.hpp"

namespace esker::cli {

namespace {

constexpr std::uint32_t max_threads = 1024;
constexpr int max_level = 19;

void add_threads(CLI::App* app, std::uint32_t& threads) {
  app->add_option("--threads", threads, "How many work at a time (all cores)")
      ->check(CLI::Range(1U, max_threads))
      ->option_text("N");
}

void add_output(CLI::App* app, std::string& output, bool& force, const char* text) {
  app->add_option("-o,--output", output, text)->option_text("FILE");
  app->add_flag("-f,--force", force, "Replace the file when it exists");
}

void add_lossy(CLI::App* app, Lossy& lossy, std::vector<CLI::Option*>& options) {
  options.push_back(add_choice<Lossy>(app, "--lossy", lossy, {{"q8", Lossy::q8}, {"q4", Lossy::q4}},
                                      "q8 or q4: fewer bits, never mixed with exact rows")
                        ->option_text("NAME"));
}

}  // namespace

std::vector<CLI::Option*> Parser::add_codec(CLI::App* app, CodecArgs& codec, bool lossy) {
  std::vector<CLI::Option*> options{
      add_choice<Compression>(
          app, "--codec", codec.compression,
          {{"raw", Compression::raw}, {"lz4", Compression::lz4}, {"zstd", Compression::zstd}},
          "raw, lz4 (fast, default) or zstd (small)")
          ->option_text("NAME"),
      app->add_option("--level", codec.level, "How hard zstd tries, 1 to 19 (3)")
          ->check(CLI::Range(1, max_level))
          ->option_text("N")};
  if (lossy) add_lossy(app, codec.lossy, options);
  add_threads(app, codec.threads);
  return options;
}

void Parser::check_codec(const CodecArgs& codec) {
  if (codec.level == 0 || codec.compression == Compression::zstd) return;
  throw CLI::ParseError("--level is of zstd: give --codec zstd too", usage_code);
}

void Parser::add_names(CLI::App* app, std::vector<std::string>& names, const char* text) {
  const auto read = [&names](const Words& words) {
    for (const std::string& name : words) {
      // An empty variable of a script must not turn into a command without a session.
      if (name.empty()) throw CLI::ValidationError("--session", "the name is empty");
    }
    names = words;
  };
  app->add_option_function<Words>("--session", read, text)
      ->option_text("NAME")
      ->allow_extra_args(false);
}

void Parser::add_namespaces(CLI::App* app, std::vector<std::string>& namespaces, const char* text) {
  const auto read = [&namespaces](const Words& words) {
    namespaces.clear();
    for (const std::string& word : words) {
      namespaces.push_back(value_or_throw(parse_namespace(word)));
    }
  };
  app->add_option_function<Words>("--namespace", read, text)
      ->option_text("NAME")
      ->allow_extra_args(false);
}

void Parser::add_snapshot_import(CLI::App* app, SnapshotImportArgs& args) {
  app->add_option("--assume-same", args.assume_same,
                  "A key of the model id that may differ; repeatable")
      ->option_text("KEY")
      ->allow_extra_args(false);
  app->add_flag_callback(
      "--no-sessions", [&args] { args.sessions = false; }, "Only rows, no sessions");
  app->add_flag("--replace-sessions", args.replace_sessions,
                "Also sessions that are there with other tokens")
      ->excludes(app->get_option("--no-sessions"));
  add_threads(app, args.threads);
  const std::vector<CLI::Option*> of_new_stores{
      add_bytes(app, "--capacity", args.capacity_bytes, "Cap of a new store (room for the file)"),
      add_bytes(app, "--cold", args.cold_bytes, "Part of it for cold blocks (0)"),
      app->add_flag("--group", args.group, "Let the directory's group use a new store too"),
      add_bytes(app, "--segment-size", args.segment_bytes,
                "Size of one segment file; for very small stores")};
  of_new_stores.back()->group("Advanced");
  // `restore` has no such flag: it always may create.
  CLI::Option* create = app->get_option_no_throw("--create");
  for (CLI::Option* option : of_new_stores) {
    if (create != nullptr) option->needs(create);
  }
}

void Parser::add_snapshots() {
  add_diff();
  add_merge();
  add_split();
  add_repack();
  add_backup();
  add_restore();
}

void Parser::add_diff() {
  CLI::App* app = verb("diff");
  auto args = std::make_shared<DiffArgs>();
  const CLI::Option* operands = add_operands(app);
  add_namespaces(app, args->namespaces, "A tenant, whose name no snapshot tells; repeatable");
  finish(app, [this, args, operands]() -> Command {
    std::vector<std::string> words = operands->results();
    if (!sources_.option.empty()) words.insert(words.begin(), sources_.option);
    if (words.size() != 2) {
      throw CLI::ParseError("expected two stores or snapshots to compare", usage_code);
    }
    args->a = std::move(words.front());
    args->b = std::move(words.back());
    return *args;
  });
}

/// The inputs of merge, split and repack are files, so many at least and at most.
void Parser::finish_rewrite(CLI::App* app, std::shared_ptr<RewriteArgs> args,
                            const CLI::Option* operands, std::pair<std::size_t, std::size_t> some) {
  add_output(app, args->output, args->force, "The file to write; - is a pipe");
  finish(app, [this, args, operands, some]() -> Command {
    args->inputs = operands->results();
    if (!sources_.option.empty()) {
      throw CLI::ParseError("-s does not belong here: the operands are snapshot files", usage_code);
    }
    if (args->inputs.size() < some.first || args->inputs.size() > some.second) {
      const bool one = some.second == 1;
      throw CLI::ParseError(one ? "expected one snapshot file"
                                : "expected snapshot files, two or "
                                  "more",
                            usage_code);
    }
    if (args->output.empty()) {
      throw CLI::ParseError("where to? Give -o FILE, or -o - for a pipe", usage_code);
    }
    check_codec(args->codec);
    return *args;
  });
}

void Parser::add_merge() {
  CLI::App* app = verb("merge");
  auto args = std::make_shared<RewriteArgs>();
  const CLI::Option* operands = add_operands(app);
  add_codec(app, args->codec, false);
  finish_rewrite(app, args, operands, {2, SIZE_MAX});
}

void Parser::add_split() {
  CLI::App* app = verb("split");
  auto args = std::make_shared<RewriteArgs>();
  const CLI::Option* operands = add_operands(app);
  add_names(app, args->sessions, "A session that is to be in the new file; repeatable");
  app->get_option("--session")->required();
  add_codec(app, args->codec, false);
  finish_rewrite(app, args, operands, {1, 1});
}

void Parser::add_repack() {
  CLI::App* app = verb("repack");
  auto args = std::make_shared<RewriteArgs>();
  const CLI::Option* operands = add_operands(app);
  add_codec(app, args->codec);
  finish_rewrite(app, args, operands, {1, 1});
}

void Parser::add_backup() {
  CLI::App* app = verb("backup");
  auto args = std::make_shared<BackupArgs>();
  add_store(app, args->store);
  add_output(app, args->output, args->force,
             "The file to write, - is a pipe (the store's name and .esnap)");
  app->add_option("--all", args->directory, "Every store in the home, a file each in this place")
      ->option_text("DIR")
      ->excludes(app->get_option("--output"));
  add_codec(app, args->codec, false);
  finish(app, [this, args]() -> Command {
    check_codec(args->codec);
    if (args->directory.empty()) {
      args->store = value_or_throw(settle_store(args->store, sources_));
    } else if (!args->store.empty() || !sources_.option.empty()) {
      throw CLI::ParseError("both a store and --all: give one of them", usage_code);
    }
    return *args;
  });
}

/// `import --create` under the name that people look for.
void Parser::add_restore() {
  CLI::App* app = verb("restore");
  auto args = std::make_shared<ImportArgs>();
  const CLI::Option* operands = add_operands(app);
  add_namespaces(app, args->namespaces, "A tenant, whose name no snapshot tells; repeatable");
  add_snapshot_import(app, args->snapshot);
  args->format = "esnap";
  args->snapshot.create = true;
  finish(app, [this, args, operands]() -> Command {
    Operands settled = value_or_throw(settle_file(operands->results(), sources_));
    args->store = std::move(settled.store);
    args->file = std::move(settled.rest.front());
    return *args;
  });
}

}  // namespace esker::cli
