#include "token_ids.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

namespace esker::cli {

namespace {

using Ids = std::vector<std::int32_t>;

static_assert(std::endian::native == std::endian::little, "raw ids are read as they lie");

tl::unexpected<Error> refuse(const std::string& file, std::string_view what,
                             Errc errc = Errc::invalid, int os_error = 0) {
  return tl::make_unexpected(Error{errc, os_error, fmt::format("{}: {}", file, what)});
}

/// Collects the ids of a JSON list without building a document: memory stays within the list
/// itself, however the input nests.
class IdsFromJson : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit IdsFromJson(Ids& ids) : ids_(ids) {}

  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] bool found() const noexcept { return found_; }

  bool null() override { return stray("null"); }
  bool boolean(bool) override { return stray("true or false"); }
  bool number_float(number_float_t, const string_t& text) override {
    return stray(fmt::format("the number {}", text.substr(0, 32)));
  }
  bool string(string_t&) override { return stray("a string"); }
  bool binary(binary_t&) override { return stray("binary data"); }

  bool number_integer(number_integer_t value) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX)));
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0 || (in_object_ && depth_ == 1 && wanted_)) {
      if (found_) return problem("holds two lists of ids");
      found_ = true;
      ++depth_;
      return true;
    }
    return stray("a list");
  }
  bool end_array() override {
    --depth_;
    wanted_ = false;
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ != 0) return stray("an object");
    in_object_ = true;
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    wanted_ = name == "tokens";
    return wanted_ || problem("is a JSON object with other fields than \"tokens\"");
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return problem(fmt::format("is no valid JSON from byte {} on", position));
  }

 private:
  bool problem(std::string what) {
    problem_ = std::move(what);
    return false;
  }
  bool stray(std::string_view what) {
    return problem(fmt::format("holds {} where token id {} should stand", what, ids_.size()));
  }
  bool number(std::int64_t value) {
    if (!found_) return stray("a bare number");
    if (value < INT32_MIN || value > INT32_MAX) {
      return problem(
          fmt::format("token id {} is {}, out of the range of int32", ids_.size(), value));
    }
    ids_.push_back(static_cast<std::int32_t>(value));
    return true;
  }

  Ids& ids_;
  std::string problem_;
  int depth_ = 0;
  bool in_object_ = false;
  bool wanted_ = false;
  bool found_ = false;
};

Result<Ids> from_json(std::string_view text, const std::string& file) {
  Ids ids;
  IdsFromJson reader(ids);
  const bool complete = nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  if (!complete) return refuse(file, reader.problem());
  if (!reader.found()) return refuse(file, "holds no list of token ids");
  return ids;
}

Result<Ids> from_text(std::string_view text, const std::string& file) {
  constexpr std::string_view separators = " \t\r\n,;";
  Ids ids;
  for (std::size_t at = text.find_first_not_of(separators); at != std::string_view::npos;
       at = text.find_first_not_of(separators, at)) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    std::int32_t id = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), id);
    if (read.ec == std::errc::result_out_of_range) {
      return refuse(file, fmt::format("token id {} is {}, out of the range of int32", ids.size(),
                                      word.substr(0, 32)));
    }
    if (read.ec != std::errc{} || read.ptr != word.data() + word.size()) {
      return refuse(file, fmt::format("\"{}\" stands where token id {} should: expected token ids, "
                                      "not text (esker has no tokenizer)",
                                      word.substr(0, 32), ids.size()));
    }
    ids.push_back(id);
    at = end;
  }
  return ids;
}

Result<Ids> from_raw(std::string_view bytes, const std::string& file) {
  if (bytes.size() % sizeof(std::int32_t) != 0) {
    return refuse(file, fmt::format("{} bytes are no whole number of raw int32 ids", bytes.size()));
  }
  Ids ids(bytes.size() / sizeof(std::int32_t));
  std::memcpy(ids.data(), bytes.data(), bytes.size());
  return ids;
}

/// Raw ids hold zero bytes, since no vocabulary reaches 2^24; text, in UTF-8 too, never does.
bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return (byte >= 0x20 && byte < 0xF8 && byte != 0x7F) || letter == '\n' || letter == '\r' ||
           letter == '\t';
  });
}

/// Reads to the end of `fd`, at most one byte more than allowed.
Result<std::string> slurp(int fd, const std::string& file) {
  constexpr std::size_t step = std::size_t{64} << 10;
  std::string bytes;
  while (bytes.size() <= max_token_file_bytes) {
    const std::size_t old = bytes.size();
    bytes.resize(old + step);
    const ssize_t got = ::read(fd, bytes.data() + old, step);
    bytes.resize(old + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got == 0) return bytes;
    if (got < 0 && errno != EINTR) {
      const int error = errno;
      return refuse(file, std::strerror(error), Errc::io, error);
    }
  }
  return refuse(file, fmt::format("is larger than {} MiB: no prompt is that long",
                                  max_token_file_bytes >> 20));
}

}  // namespace

Result<Ids> parse_token_ids(std::string_view bytes, const std::string& file) {
  const bool text = is_text(bytes);
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool json =
      text && first != std::string_view::npos && (bytes[first] == '[' || bytes[first] == '{');
  Result<Ids> ids = json   ? from_json(bytes, file)
                    : text ? from_text(bytes, file)
                           : from_raw(bytes, file);
  if (ids && ids->empty()) return refuse(file, "holds no token ids");
  return ids;
}

Result<Ids> read_token_ids(const std::string& file) {
  const bool from_stdin = file == "-";
  const std::string name = from_stdin ? "standard input" : file;
  const int fd = from_stdin ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    return refuse(name, std::strerror(error), Errc::io, error);
  }
  Result<std::string> bytes = slurp(fd, name);
  if (!from_stdin) ::close(fd);
  if (!bytes) return tl::make_unexpected(std::move(bytes).error());
  return parse_token_ids(*bytes, name);
}

}  // namespace esker::cli
