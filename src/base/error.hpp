#pragma once

#include <cstdint>
#include <esker/result.hpp>
#include <string>
#include <string_view>

namespace esker::detail {

using Failure = tl::unexpected<Error>;

[[nodiscard]] Failure fail(Errc code, std::string message, int os_error = 0);

/// Passes the error of a result on.
template <class T>
[[nodiscard]] Failure failure_of(Result<T>& result) {
  return tl::make_unexpected(std::move(result).error());
}

/// "PATH: WHAT: No space left on device". Out of memory and of space keep their own meaning: ENOMEM
/// is `no_memory`, everything else `io`.
[[nodiscard]] Failure fail_os(std::string_view path, std::string_view what, int os_error);

/// "PATH: FIELD is FOUND, expected EXPECTED; HINT".
[[nodiscard]] Failure fail_field(Errc code, std::string_view path, std::string_view field,
                                 std::string_view found, std::string_view expected,
                                 std::string_view hint = {});

[[nodiscard]] std::string hex(std::uint64_t value);
[[nodiscard]] std::string size_text(std::uint64_t bytes);  ///< "64.0 MiB"

}  // namespace esker::detail
