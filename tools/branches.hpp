#pragma once

#include <cstdint>
#include <esker/block_info.hpp>
#include <span>
#include <string>
#include <vector>

namespace esker::cli {

/// A piece of the trie without a fork: the blocks from behind one fork up to the next, or to the
/// end of a path. Or, above them, a namespace; the first one is the whole store.
struct Branch {
  std::uint32_t parent = UINT32_MAX;  ///< always a lower index
  std::uint32_t first_token = 0;
  std::uint64_t tokens = 0;
  std::uint64_t blocks = 0;
  std::uint64_t paths = 0;  ///< that end here or behind it
  std::uint64_t own_bytes = 0;
  std::uint64_t total_bytes = 0;        ///< with all that follows
  std::uint64_t published_unix_ns = 0;  ///< its first block
  std::uint64_t last_used_unix_ns = 0;  ///< of the block, in it or behind it, that was used last
  std::uint64_t path = 0;               ///< name of the prefix that ends with it; 0 above the trie
  std::uint32_t pins = 0;
  std::string title;  ///< of the store and of namespaces; "" for the others
};

[[nodiscard]] std::vector<Branch> branches_of(std::span<const BlockInfo> blocks,
                                              std::uint64_t block_bytes, std::string store);

}  // namespace esker::cli
