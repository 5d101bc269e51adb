#pragma once

#include <esker/options.hpp>
#include <esker/result.hpp>
#include <memory>
#include <string>

#include "format/superblock.hpp"
#include "region/directory.hpp"

namespace esker::detail {

class Core;

/// Reads and checks the superblock of a store's directory.
[[nodiscard]] Result<Superblock> read_superblock(const Directory& directory);

/// Opens a handle: under INIT it finds or rebuilds `control`, takes a seat and goes LIVE.
[[nodiscard]] Result<std::shared_ptr<Core>> attach(const std::string& path, const Options& options);

}  // namespace esker::detail
