#include "output.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "plain_text.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Value& value);

struct ToJson {
  Json operator()(const List& list) const {
    Json out = Json::array();
    for (const Value& entry : list) out.push_back(to_json(entry));
    return out;
  }
  Json operator()(const Object& object) const {
    Json out = Json::object();
    for (const auto& [name, entry] : object) out[name] = to_json(entry);
    return out;
  }
  template <class T>
  Json operator()(const T& plain) const {
    return Json(plain);
  }
};

Json to_json(const Value& value) { return std::visit(ToJson{}, value.data); }

Json with_schema(std::string_view command, Object fields) {
  Json document;
  std::string kind(command);
  std::replace(kind.begin(), kind.end(), ' ', '-');
  document["schema"] = fmt::format("esker.{}/1", kind);
  for (auto& [name, value] : fields) document[name] = to_json(value);
  return document;
}

/// Bytes that are no UTF-8 (a process may call itself anything) become U+FFFD.
std::string dumped(const Json& document, int indent) {
  return document.dump(indent, ' ', false, Json::error_handler_t::replace) + '\n';
}

/// "SUBJECT: message", or only the message where that begins with the subject's own path.
std::string told(std::string_view subject, std::string_view message) {
  const bool named = !subject.empty() && message.starts_with(subject) &&
                     message.find_first_of(":/", subject.size()) == subject.size();
  const std::string who = subject.empty() || named ? "" : harmless(subject) + ": ";
  return who + harmless(message);
}

bool wants_color(ColorWhen when, std::FILE* out) {
  if (when != ColorWhen::automatic) return when == ColorWhen::always;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  if (term == nullptr || std::strcmp(term, "dumb") == 0) return false;
  return isatty(fileno(out)) == 1;
}

std::vector<std::size_t> column_widths(const Table& table) {
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) widths.push_back(width(column.title));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], width(harmless(row[i].text)));
    }
  }
  return widths;
}

}  // namespace

void drop_empty_columns(Table& table) {
  for (std::size_t column = table.columns.size(); column-- > 1;) {
    const bool empty = std::all_of(table.rows.begin(), table.rows.end(),
                                   [&](const auto& row) { return row[column].text.empty(); });
    if (!empty) continue;
    const auto at = static_cast<std::ptrdiff_t>(column);
    table.columns.erase(table.columns.begin() + at);
    for (auto& row : table.rows) row.erase(row.begin() + at);
  }
}

Exit exit_for(Errc errc) noexcept {
  switch (errc) {
    case Errc::missing:
      return Exit::missing;
    case Errc::busy:
      return Exit::busy;
    case Errc::incompatible:
      return Exit::incompatible;
    default:
      return Exit::failed;
  }
}

Output::Output(OutputOptions options, std::FILE* out, std::FILE* err)
    : options_(std::move(options)),
      out_(out),
      err_(err),
      colored_(wants_color(options_.color, out)) {}

bool Output::shows_progress() const noexcept {
  return !options_.json && !options_.quiet && !options_.no_progress && isatty(fileno(err_)) == 1;
}

void Output::put(std::string_view text) {
  if (write_error_ != 0) return;
  if (std::fwrite(text.data(), 1, text.size(), out_) != text.size()) write_error_ = errno;
}

void Output::flush() {
  if (write_error_ == 0 && std::fflush(out_) != 0) write_error_ = errno;
}

bool Output::reader_gone() const noexcept {
  pollfd reader{fileno(out_), 0, 0};
  return write_error_ != 0 || (poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0);
}

std::string Output::tinted(std::string_view text, Tint tint) const {
  if (!colored_ || tint == Tint::none) return std::string(text);
  constexpr std::string_view codes[] = {"", "\x1b[32m", "\x1b[31m", "\x1b[2m"};
  return fmt::format("{}{}\x1b[0m", codes[static_cast<std::size_t>(tint)], text);
}

void Output::line(std::string_view text, Tint tint) {
  if (!options_.json) put(tinted(harmless(text), tint) + '\n');
}

void Output::fact(std::string_view name, std::string_view value) {
  if (!options_.json) put(fmt::format("{:<18}{}\n", name, harmless(value)));
}

void Output::table(const Table& table) {
  if (options_.json) return;
  const std::vector<std::size_t> widths = column_widths(table);
  const auto put_row = [&](const std::vector<Cell>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size() && i < widths.size(); ++i) {
      const std::string cell = harmless(cells[i].text);
      const std::string pad(widths[i] - std::min(widths[i], width(cell)), ' ');
      const bool last = i + 1 == cells.size();
      if (table.columns[i].right) text += pad;
      text += tinted(cell, cells[i].tint);
      if (!table.columns[i].right && !last) text += pad;
      if (!last) text += "  ";
    }
    put(text + '\n');
  };
  std::vector<Cell> titles;
  for (const Column& column : table.columns) titles.emplace_back(column.title, Tint::dim);
  put_row(titles);
  for (const auto& row : table.rows) put_row(row);
}

void Output::json(Object fields) {
  if (options_.json) put(dumped(with_schema(options_.command, std::move(fields)), 2));
}

void Output::json_line(Object fields) {
  if (!options_.json) return;
  put(dumped(with_schema(options_.command, std::move(fields)), -1));
  flush();
}

void Output::note(std::string_view subject, std::string_view message) {
  if (options_.json || options_.quiet) return;
  progress_line("");
  fmt::print(err_, "esker: {}\n", told(subject, message));
}

void Output::report(std::string_view subject, const Error& error, Exit exit) {
  progress_line("");
  if (!options_.json) {
    fmt::print(err_, "esker: {}\n", told(subject, error.message));
    return;
  }
  Json document;
  document["schema"] = "esker.error/1";
  document["command"] = options_.command;
  document["store"] = std::string(subject);
  document["error"] = std::string(name(error.code));
  document["os_error"] = error.os_error;
  document["message"] = error.message;
  document["exit"] = code(exit);
  std::fputs(dumped(document, -1).c_str(), err_);
}

int Output::fail(std::string_view subject, const Error& error) {
  const Exit exit = exit_for(error.code);
  report(subject, error, exit);
  return code(exit);
}

int Output::fail(std::string_view subject, std::string_view message) {
  report(subject, Error{Errc::invalid, 0, std::string(message)}, Exit::failed);
  return code(Exit::failed);
}

bool Output::confirm(std::string_view question, bool assume_yes) {
  if (assume_yes || options_.json || isatty(STDIN_FILENO) != 1 || isatty(fileno(err_)) != 1) {
    return true;
  }
  fmt::print(err_, "{} [y/N] ", harmless(question));
  std::fflush(err_);
  const int answer = std::getchar();
  for (int rest = answer; rest != '\n' && rest != EOF;) rest = std::getchar();
  return answer == 'y' || answer == 'Y';
}

void Output::progress_line(std::string_view text) {
  if (!shows_progress()) return;
  winsize window{};
  const bool sized = ioctl(fileno(err_), TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
  const std::size_t columns = sized ? window.ws_col - 1U : 79U;
  fmt::print(err_, "\r\x1b[K{}", text.substr(0, columns));
  std::fflush(err_);
}

std::string Output::size(std::uint64_t bytes) const {
  return options_.raw_bytes ? std::to_string(bytes) : format_bytes(bytes);
}

int Output::finish(int wanted) {
  flush();
  if (write_error_ == 0) return wanted;
  if (write_error_ == EPIPE) return code(Exit::pipe_closed);
  report("",
         Error{Errc::io, write_error_,
               fmt::format("cannot write the result: {}", std::strerror(write_error_))},
         Exit::failed);
  return code(Exit::failed);
}

}  // namespace esker::cli
