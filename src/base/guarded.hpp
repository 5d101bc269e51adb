#pragma once

#include <esker/result.hpp>
#include <new>
#include <stdexcept>

namespace esker::detail {

/// Runs what may throw for want of memory behind a noexcept member of the API.
template <class F>
auto guarded(F&& run) noexcept -> decltype(run()) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  // A message this short needs no allocation.
  return tl::make_unexpected(Error{Errc::no_memory, 0, "out of memory"});
}

}  // namespace esker::detail
