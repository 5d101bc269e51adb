#pragma once

#include <esker/options.hpp>
#include <esker/result.hpp>
#include <memory>
#include <string>

#include "format/superblock.hpp"
#include "region/directory.hpp"
#include "sync/lock.hpp"

namespace esker::detail {

class Core;

/// Reads and checks the superblock of a store's directory.
[[nodiscard]] Result<Superblock> read_superblock(const Directory& directory);

/// Opens a handle: under INIT it finds or rebuilds `control`, takes a seat and goes LIVE.
[[nodiscard]] Result<std::shared_ptr<Core>> attach(const std::string& path, const Options& options);

/// What is known of a store before it is attached to.
struct FoundStore {
  Directory directory;
  Superblock superblock;
};
/// The same for who holds INIT of the store already, through `lock`.
[[nodiscard]] Result<std::shared_ptr<Core>> attach_under(const LockFile& lock, FoundStore store,
                                                         const Options& options);

}  // namespace esker::detail
