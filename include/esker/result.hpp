#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace esker {

/// Why an operation failed. A miss and a full cache are no errors: a miss is an empty Prefix, and a
/// Reservation in a full cache simply covers fewer tokens. The values are stable: they only grow.
enum class Errc : std::uint8_t {
  io = 1,       ///< the operating system refused: no space, no permission, a failing disk
  corrupt = 2,  ///< bytes on disk do not check; the message names file and field
  incompatible =
      3,          ///< another format version, geometry or model id; the message names what differs
  full = 4,       ///< no room even after eviction, where room is all that was asked for
  busy = 5,       ///< others hold what is needed: every seat is taken, or an opener is stuck
  invalid = 6,    ///< an argument value is wrong; the message names it with the allowed range
  no_memory = 7,  ///< this process is out of memory or of address space
  missing = 8,    ///< there is no store at that path
  forked = 9,     ///< this handle belongs to the parent process: open the store again
};

/// The name of a code as it stands in messages and JSON, for instance "incompatible".
[[nodiscard]] std::string_view name(Errc code) noexcept;

/// One failure: a code to branch on and a sentence for people.
/// Threads:  a plain value.
/// Lifetime: owns its text.
/// Errors:   is one. `os_error` is the errno behind it, or 0.
/// Cost:     one string, built only on failure.
struct Error {
  Errc code = Errc::io;
  int os_error = 0;
  std::string message;  ///< names file, field, found and expected, and what to do
};

/// A value or an Error. `value()` throws `tl::bad_expected_access`, for those who like exceptions
/// (not for `Result<void>`, whose `value()` Debian's tl::expected 1.0.0 lacks).
template <class T>
using Result = tl::expected<T, Error>;

}  // namespace esker
