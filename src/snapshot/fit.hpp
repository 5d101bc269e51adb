#pragma once

#include <esker/snapshot_info.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "archive/nodes.hpp"
#include "format/snapshot_file.hpp"

namespace esker::detail {

/// `Errc::incompatible` with the names of what differs, unless rows of this file may go into a
/// store of this geometry and model id. `Errc::invalid` when `assume_same` names `lossy`.
[[nodiscard]] Result<void> check_fits(const SnapshotHead& head, const std::string& label,
                                      const Geometry& geometry, const ModelId& model,
                                      const std::vector<std::string>& assume_same);

/// What the namespaces of a file are called; nothing where only a digest is known, and none of
/// `names` has it.
[[nodiscard]] Result<std::vector<std::optional<std::string>>> name_namespaces(
    const SnapshotHead& head, const std::vector<ArchiveNamespace>& archived,
    const std::vector<std::string>& names);

}  // namespace esker::detail
