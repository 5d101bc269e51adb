#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "support/disk.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

namespace esker::test {

/// A small store with a share for cold blocks.
[[nodiscard]] inline Options cold_options(std::uint64_t cold_bytes = 4 * mib) {
  Options options = small_options(16 * mib);
  options.cold_bytes = cold_bytes;
  options.keep_free_bytes = 0;
  return options;
}

[[nodiscard]] inline Store make_cold_store(const std::string& path,
                                           const Options& options = cold_options(),
                                           const Geometry& geometry = small_geometry()) {
  return make_store(path, geometry, options);
}

inline Frozen freeze_all(Store& store, FreezeOptions options = {}) {
  return need(store.freeze(UINT64_MAX, options));
}

/// Thaws, and checks all that is found then. Throws on a wrong byte.
inline std::uint32_t thaw_and_get(Store& store, const TokenList& tokens,
                                  Namespace name_space = {}) {
  const std::uint32_t thawed = need(store.thaw(tokens, name_space));
  const std::uint32_t found = get(store, tokens, name_space);
  return std::min(thawed, found);
}

[[nodiscard]] inline std::vector<std::string> cold_files(const std::string& store) {
  std::vector<std::string> names;
  if (!std::filesystem::exists(store + "/cold")) return names;
  for (const auto& entry : std::filesystem::directory_iterator(store + "/cold")) {
    names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace esker::test
