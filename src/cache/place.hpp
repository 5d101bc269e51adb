#pragma once

#include <cstdint>
#include <esker/kv_cache.hpp>
#include <esker/result.hpp>
#include <string>

#include "format/cache_file.hpp"
#include "region/directory.hpp"
#include "region/mapping.hpp"

namespace esker::detail {

/// The byte that the writer of a cache file locks.
inline constexpr std::uint64_t cache_writer_byte = cache_live_offset;

/// A name in an opened directory.
struct Place {
  Directory directory;
  std::string name;
};

/// Splits a path and refuses file systems where mappings and locks are not coherent.
[[nodiscard]] Result<Place> place_of(const std::string& path, const CacheFileOptions& options);

/// Never through a symbolic link; refuses files of others and those that others may open.
/// `Errc::missing` when there is none.
[[nodiscard]] Result<File> open_cache_file(const Place& place, int flags);

/// Names this very file in this very boot: a copy, and the same file after a reboot, have another.
[[nodiscard]] Result<std::uint64_t> identity_of(const File& file, const CacheHeader& header);

/// To be asked once no descriptor refers to the lock any more.
[[nodiscard]] Result<void> check_lock_is_kept(const Place& place, const std::string& path);

}  // namespace esker::detail
