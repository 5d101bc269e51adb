#pragma once

#include <cstdint>

namespace esker::test {

/// Calls of operator new by this thread so far; the binary's own operator new counts them.
[[nodiscard]] std::uint64_t allocations() noexcept;

/// The most bytes that all threads together have held, beyond what they held when this was made.
class PeakOfMemory {
 public:
  PeakOfMemory() noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept;

 private:
  std::uint64_t before_;
};

}  // namespace esker::test
