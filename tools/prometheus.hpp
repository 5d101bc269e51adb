#pragma once

#include <esker/stats.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store_operand.hpp"

namespace esker::cli {

/// What one store says of itself, or why it says nothing.
struct StoreSample {
  std::string label;
  std::optional<Info> info;
  std::optional<Stats> stats;
  bool seated = false;  ///< pins and counters are known
};

[[nodiscard]] StoreSample sample_store(const StorePlace& place);

/// The text exposition format of Prometheus, version 0.0.4, as the textfile collector of
/// node_exporter takes it: without times. What a store does not tell is left out.
[[nodiscard]] std::string exposition(const std::vector<StoreSample>& stores);

/// A label's value between its quotes.
[[nodiscard]] std::string label_text(std::string_view value);

/// Puts the text in place of a file at once, since a collector may read it at any moment. The name
/// it has until then does not end in ".prom". Everyone may read it: a collector is another user.
[[nodiscard]] Result<void> replace_file(const std::string& path, std::string_view text);

}  // namespace esker::cli
