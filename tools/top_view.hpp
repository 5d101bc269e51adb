#pragma once

#include <string>
#include <vector>

#include "output.hpp"
#include "screen.hpp"
#include "top_sample.hpp"

namespace esker::cli {

/// Two looks at one store; the first time both are the same.
struct TopPair {
  TopSample before;
  TopSample now;
};

struct TopFrame {
  Screen::Size size;  ///< no line is longer, and there are no more of them
  bool colored = false;
  std::string hint;  ///< how to end it, or ""
};

/// One store on one screen.
[[nodiscard]] std::vector<std::string> store_view(const TopPair& store, const TopFrame& frame);
/// A line for each store of the home.
[[nodiscard]] std::vector<std::string> home_view(const std::vector<TopPair>& stores,
                                                 const TopFrame& frame);

/// The same for programs.
[[nodiscard]] Object top_value(const TopPair& store);

}  // namespace esker::cli
