#pragma once

#include <array>
#include <esker/snapshot_info.hpp>
#include <string>
#include <vector>

#include "output.hpp"

namespace esker::cli {

// What several commands show of a snapshot, so that all of them show it alike.

/// "lossy K: rms 0.00123 (0.31 %), at most 0.021": a line per plane, none for exact rows.
[[nodiscard]] std::vector<std::string> lossy_lines(const std::array<LossyError, 2>& error);
/// The same for programs; null for exact rows.
[[nodiscard]] Value lossy_value(const std::array<LossyError, 2>& error);

/// "1.55x"; "-" where nothing is stored.
[[nodiscard]] std::string format_ratio(std::uint64_t raw_bytes, std::uint64_t stored_bytes);

/// The namespace as text, or that its name is not known.
[[nodiscard]] std::string namespace_text(const SnapshotNamespace& name_space);

}  // namespace esker::cli
