#pragma once

#include <cstdint>
#include <cstdio>
#include <esker/result.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace esker::cli {

/// What the process answers with. Scripts rely on the numbers: never renumber.
enum class Exit : int {
  ok = 0,
  no = 1,            ///< the answer is "no": damage found, nothing matched
  failed = 2,        ///< usage or operating error
  missing = 3,       ///< there is no such store or session
  busy = 4,          ///< others hold what is needed
  incompatible = 5,  ///< another version, geometry or model id
  pipe_closed = 141  ///< the reader of stdout went away: 128 + SIGPIPE, as a shell would say
};

[[nodiscard]] constexpr int code(Exit exit) noexcept { return static_cast<int>(exit); }
[[nodiscard]] Exit exit_for(Errc errc) noexcept;

/// A tree of plain values for `--json`; output.cpp turns it into text.
struct Value;
using List = std::vector<Value>;
using Object = std::vector<std::pair<std::string, Value>>;

struct Value {
  std::variant<std::nullptr_t, bool, std::uint64_t, std::int64_t, double, std::string, List, Object>
      data = nullptr;

  Value() = default;
  Value(bool value) : data(value) {}
  Value(int value) : data(static_cast<std::int64_t>(value)) {}
  Value(std::uint32_t value) : data(static_cast<std::uint64_t>(value)) {}
  Value(std::uint64_t value) : data(value) {}
  Value(std::int64_t value) : data(value) {}
  Value(double value) : data(value) {}
  Value(const char* value) : data(std::string(value)) {}
  Value(std::string_view value) : data(std::string(value)) {}
  Value(std::string value) : data(std::move(value)) {}
  Value(List value) : data(std::move(value)) {}
  Value(Object value) : data(std::move(value)) {}
};

enum class Tint : std::uint8_t { none, good, bad, dim };

/// One cell of a table. Control characters in it are replaced when it is printed.
struct Cell {
  std::string text;
  Tint tint = Tint::none;

  Cell(std::string value, Tint color = Tint::none) : text(std::move(value)), tint(color) {}
  Cell(const char* value, Tint color = Tint::none) : text(value), tint(color) {}
};

struct Column {
  std::string title;
  bool right = false;  ///< numbers stand at the right edge
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

/// Leaves out the columns, but for the first, that hold nothing: they only push the others apart.
void drop_empty_columns(Table& table);

enum class ColorWhen : std::uint8_t { automatic, always, never };

struct OutputOptions {
  std::string command;  ///< the verb, such as "ls" or "session ls": names the JSON schema
  bool json = false;
  bool quiet = false;
  bool no_progress = false;
  bool raw_bytes = false;  ///< print sizes as plain numbers of bytes
  ColorWhen color = ColorWhen::automatic;
};

/// All that a command says: results to stdout, talk to stderr, for people or for programs.
/// In JSON mode `line`, `table`, `fact` and `note` say nothing, in the other mode `json` says
/// nothing, so a command states both without asking which is wanted.
class Output {
 public:
  explicit Output(OutputOptions options, std::FILE* out = stdout, std::FILE* err = stderr);

  [[nodiscard]] bool is_json() const noexcept { return options_.json; }
  [[nodiscard]] bool is_quiet() const noexcept { return options_.quiet; }
  [[nodiscard]] bool shows_progress() const noexcept;  ///< a terminal listens, and wants to
  [[nodiscard]] bool is_colored() const noexcept { return colored_; }
  [[nodiscard]] const std::string& command() const noexcept { return options_.command; }

  // Results.

  void line(std::string_view text, Tint tint = Tint::none);
  void fact(std::string_view name, std::string_view value);  ///< "name   value", aligned
  void table(const Table& table);
  void text(std::string_view text) { put(text); }  ///< help, as it is
  /// One document. "schema":"esker.<command>/1" is put in front of the fields, with a dash for the
  /// blank of "session ls".
  void json(Object fields);
  /// One line of a stream of documents (NDJSON), flushed at once.
  void json_line(Object fields);
  void flush();
  /// True when nobody reads stdout any more; for commands that run on.
  [[nodiscard]] bool reader_gone() const noexcept;

  // Talk.

  /// A warning or remark: `esker: SUBJECT: message`. Silent with -q and --json.
  void note(std::string_view subject, std::string_view message);
  /// Reports a failure and returns the exit code that belongs to it.
  int fail(std::string_view subject, const Error& error);
  int fail(std::string_view subject, std::string_view message);  ///< an operating or usage error
  /// Asks on the terminal; true without asking when no terminal is there or `assume_yes`.
  [[nodiscard]] bool confirm(std::string_view question, bool assume_yes);
  /// Replaces the progress line on the terminal; "" wipes it.
  void progress_line(std::string_view text);

  /// A size as the options want it: "12.4 GiB" or plain bytes.
  [[nodiscard]] std::string size(std::uint64_t bytes) const;

  /// `wanted`, unless the results could not be written.
  [[nodiscard]] int finish(int wanted);

 private:
  void put(std::string_view text);
  void report(std::string_view subject, const Error& error, Exit exit);
  [[nodiscard]] std::string tinted(std::string_view text, Tint tint) const;

  OutputOptions options_;
  std::FILE* out_;
  std::FILE* err_;
  bool colored_ = false;
  int write_error_ = 0;
};

}  // namespace esker::cli
