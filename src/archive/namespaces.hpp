#pragma once

#include <array>
#include <cstdint>
#include <esker/result.hpp>
#include <string>
#include <string_view>

#include "archive/nodes.hpp"
#include "format/snapshot_file.hpp"

namespace esker::detail {

/// True for namespaces that stand in portable files as they are: none of them names a tenant.
[[nodiscard]] bool is_public_namespace(std::string_view name) noexcept;

/// What stands for a namespace that may name a tenant. Takes milliseconds and 16 MiB on purpose:
/// whoever has the file and guesses names pays that for each guess.
[[nodiscard]] Result<std::array<std::uint8_t, 16>> namespace_digest(
    std::string_view name, const std::array<std::uint8_t, 16>& salt);

/// The namespace as it stands in a file of this use.
[[nodiscard]] Result<ArchiveNamespace> archived_namespace(std::string_view name, SnapshotUse use,
                                                          const std::array<std::uint8_t, 16>& salt);

}  // namespace esker::detail
