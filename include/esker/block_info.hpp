#pragma once

#include <cstdint>
#include <string>

namespace esker {

/// A stored block and its place in the trie: what a picture of a store is made of.
/// Threads:  a plain value.
/// Lifetime: owns its text; true at the moment it was made.
/// Errors:   none.
/// Cost:     64 to 128 bytes per block.
struct BlockInfo {
  static constexpr std::uint32_t none = UINT32_MAX;

  std::uint32_t parent = none;    ///< index in the list; none: a first block
  std::uint32_t children = 0;     ///< blocks that follow it: 0 is the end of a path, 2 a fork
  std::uint64_t path = 0;         ///< name of the prefix that ends with it; see Prefix::path
  std::uint32_t first_token = 0;  ///< position
  std::uint32_t tokens = 0;       ///< in it
  std::uint64_t published_unix_ns = 0;
  std::uint64_t last_used_unix_ns = 0;  ///< to a sixteenth of a second
  std::uint32_t pins = 0;               ///< handles that pin it
  bool key = false;                     ///< under an opaque key
  /// Its path has lost a block before it, so that no lookup reaches it; it will be evicted.
  bool orphan = false;
  std::string name_space;  ///< of a first block, and of an orphan; "" for all others
};

}  // namespace esker
