#pragma once

#include <esker/geometry.hpp>
#include <esker/options.hpp>
#include <esker/result.hpp>
#include <string>

namespace esker::detail {

/// Makes the files of a new store. `Errc::invalid` when one is there already.
[[nodiscard]] Result<void> create_store(const std::string& path, const Geometry& geometry,
                                        const ModelId& model, const Options& options);

/// Removes the files of a store that nobody has open.
[[nodiscard]] Result<void> destroy_store(const std::string& path);

}  // namespace esker::detail
