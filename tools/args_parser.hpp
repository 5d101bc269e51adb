#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "args.hpp"
#include "operands.hpp"
#include "units.hpp"

namespace esker::cli {

inline constexpr int usage_code = code(Exit::failed);

/// The command line as CLI11 sees it. Its members stand in args.cpp (parsing), args_options.cpp
/// (what several verbs share) and, a group of verbs each, in the other args_*.cpp.
class Parser {
 public:
  Parser();
  std::variant<Invocation, int> parse(int argc, const char* const* argv);
  /// What fits where the last of these words is being typed, for the completions of shells.
  [[nodiscard]] std::string complete(std::vector<std::string> words) const;

 private:
  using Finish = std::function<Command()>;
  using Words = std::vector<std::string>;

  // What several verbs share.

  CLI::App* verb(std::string_view name, CLI::App* parent = nullptr);
  void finish(CLI::App* app, Finish make);
  void add_common(CLI::App* app);
  void add_store(CLI::App* app, std::string& store);
  /// The words that are no options, whatever they look like, for who tells them apart later.
  static CLI::Option* add_operands(CLI::App* app);
  static void add_format(CLI::App* app, std::string& format, const char* text);
  void add_model(CLI::App* app, ModelArgs& model);
  void add_prompt(CLI::App* app, PromptArgs& prompt);
  void add_namespace(CLI::App* app, std::string& name_space);
  void add_change(CLI::App* app, ChangeArgs& change);
  void add_session(CLI::App* app, std::string& session, const char* text);
  static void add_names(CLI::App* app, std::vector<std::string>& names, const char* text);
  static void add_namespaces(CLI::App* app, std::vector<std::string>& namespaces, const char* text);
  static std::vector<CLI::Option*> add_codec(CLI::App* app, CodecArgs& codec, bool lossy = true);
  static void check_codec(const CodecArgs& codec);
  template <class Args>
  void finish_with_store(CLI::App* app, std::shared_ptr<Args> args);
  template <class Args>
  void add_plain(std::string_view name);

  // The verbs, a group each.

  void add_look();
  void add_ls();
  void add_match();
  void add_log();
  template <class Args>
  void settle_some(Args& args) const;
  void add_stat();
  void add_top();
  void add_report();
  void add_sessions();
  void add_session_ls(CLI::App* parent);
  void add_session_show(CLI::App* parent);
  void add_session_rm(CLI::App* parent);
  template <class Args>
  void add_session_copy(CLI::App* parent, std::string_view name);
  void add_session_keep(CLI::App* parent);
  void add_move();
  void add_import();
  static void add_session_change(CLI::App* app, SessionChange& session);
  void add_export();
  void add_convert_verbs();
  void add_cat();
  void add_convert();
  void add_snapshots();
  static void add_snapshot_import(CLI::App* app, SnapshotImportArgs& args);
  void add_diff();
  void add_merge();
  void add_split();
  void add_repack();
  void finish_rewrite(CLI::App* app, std::shared_ptr<RewriteArgs> args, const CLI::Option* operands,
                      std::pair<std::size_t, std::size_t> some);
  void add_backup();
  void add_restore();
  void add_change_verbs();
  void add_create();
  void add_rm();
  void add_evict();
  void add_trim();
  void add_destroy();
  void add_cold();
  void add_freeze();
  void add_thaw();
  void add_house();
  void add_resize();
  void add_maintain();
  void add_config();

  // Parsing.

  /// The command that was given: "session ls" is the `ls` within `session`; nullptr for none.
  [[nodiscard]] const CLI::App* chosen() const;
  [[nodiscard]] Invocation invocation();
  [[nodiscard]] int usage_error(const CLI::ParseError& error, bool json);
  [[nodiscard]] std::string unknown_verb() const;

  CLI::App app_;
  std::map<const CLI::App*, Finish> finish_;
  OutputOptions output_;
  StoreSources sources_;
  bool wants_version_ = false;
};

template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw CLI::ParseError(result.error().message, usage_code);
  return std::move(*result);
}

template <class Choice>
CLI::Option* add_choice(CLI::App* app, const char* name, Choice& value,
                        std::map<std::string, Choice> choices, const char* text) {
  std::string words;
  for (const auto& [known, unused] : choices) words += (words.empty() ? "" : ",") + known;
  const auto read = [name, &value, choices = std::move(choices)](const std::string& word) {
    const auto found = choices.find(word);
    if (found == choices.end()) {
      std::string expected;
      for (const auto& [known, unused] : choices) expected += ' ' + known;
      throw CLI::ValidationError(name, fmt::format("\"{}\" is none of:{}", word, expected));
    }
    value = found->second;
  };
  // The name of the type tells the completions what fits.
  return app->add_option_function<std::string>(name, read, text)->type_name('{' + words + '}');
}

/// Reads a size. `Bytes` is a number, or an optional one.
template <class Bytes>
CLI::Option* add_bytes(CLI::App* app, const char* name, Bytes& value, const char* text) {
  const auto read = [name, &value](const std::string& word) {
    const auto bytes = parse_bytes(word);
    if (!bytes) throw CLI::ValidationError(name, bytes.error().message);
    value = *bytes;
  };
  return app->add_option_function<std::string>(name, read, text)->option_text("SIZE");
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

/// "session ls" for the `ls` within `session`, "" for the program itself.
[[nodiscard]] std::string full_name(const CLI::App* app);

/// Examples first: they are what people look for.
class HelpText : public CLI::Formatter {
 public:
  HelpText() { column_width(30); }
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_usage(const CLI::App* app, std::string) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
};

/// CLI11 takes a word in brackets for a list: "[a,b]" would be two operands. Words that could be
/// taken so are marked before parsing, and the mark is taken off each value again.
void guard_words(std::vector<std::string>& words);
void unguard_values(CLI::App* app);

}  // namespace esker::cli
