#pragma once

/// Catch2 v2 (Debian 12) and v3 spell their header and their matchers differently; tests see none
/// of that.

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace esker::test {

/// Matches any text that contains `part`: `CHECK_THAT(error.message, contains("block_tokens"))`.
inline auto contains(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Contains(part);
#endif
}

}  // namespace esker::test
