#include "base/error.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace esker::detail {

Failure fail(Errc code, std::string message, int os_error) {
  return Failure(Error{code, os_error, std::move(message)});
}

Failure fail_os(std::string_view path, std::string_view what, int os_error) {
  std::array<char, 128> text{};
  const char* reason = strerror_r(os_error, text.data(), text.size());
  std::string message(path);
  message.append(": ").append(what).append(": ").append(reason);
  return fail(os_error == ENOMEM ? Errc::no_memory : Errc::io, std::move(message), os_error);
}

Failure fail_field(Errc code, std::string_view path, std::string_view field, std::string_view found,
                   std::string_view expected, std::string_view hint) {
  std::string message(path);
  message.append(": ").append(field).append(" is ").append(found);
  message.append(", expected ").append(expected);
  if (!hint.empty()) message.append("; ").append(hint);
  return fail(code, std::move(message));
}

std::string hex(std::uint64_t value) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text.data();
}

}  // namespace esker::detail
