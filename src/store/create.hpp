#pragma once

#include <esker/geometry.hpp>
#include <esker/options.hpp>
#include <esker/result.hpp>
#include <functional>
#include <string>

#include "region/directory.hpp"

namespace esker::detail {

/// Makes the files of a new store. `Errc::invalid` when one is there already.
[[nodiscard]] Result<void> create_store(const std::string& path, const Geometry& geometry,
                                        const ModelId& model, const Options& options);

/// True for what stands at the top of a store besides the superblock: what a killed creation or
/// destruction may leave.
[[nodiscard]] bool is_unfinished_part(const std::string& name);

/// Removes `sessions/` of a store that nobody has open, and in it the files that Esker makes there.
/// `Errc::invalid` when others are left.
[[nodiscard]] Result<void> remove_sessions(const Directory& directory);

/// Removes the files of a store that nobody has open.
[[nodiscard]] Result<void> destroy_store(const std::string& path);

/// Removes the store `name` of a directory if nobody has it open and `still` says so while nobody
/// can open it. False: it does not, or the store has just gone. Waits for nobody.
[[nodiscard]] Result<bool> destroy_below(const Directory& home, const std::string& name,
                                         const std::function<bool(const Directory&)>& still,
                                         bool dry_run);

/// What a killed creation or destruction leaves: files of a store, but no superblock.
[[nodiscard]] bool unfinished(const Directory& directory);

}  // namespace esker::detail
