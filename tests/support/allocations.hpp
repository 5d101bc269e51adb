#pragma once

#include <cstdint>

namespace esker::test {

/// Calls of operator new by this thread so far; the binary's own operator new counts them.
[[nodiscard]] std::uint64_t allocations() noexcept;

}  // namespace esker::test
