#pragma once

#include <cstdlib>
#include <esker/result.hpp>
#include <iostream>
#include <type_traits>
#include <utility>

/// The value of a result; a benchmark that cannot go on ends with the reason.
template <class T>
T need(esker::Result<T> result) {
  if (!result) {
    std::cerr << result.error().message << "\n";
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
