#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <span>
#include <string>
#include <vector>

namespace esker::test {

/// A block header as it lies in a segment file, read by the format's offsets alone, so that the
/// library is not tested with its own reading of them.
struct DiskBlock {
  std::string file;
  std::uint64_t header_offset = 0;
  std::uint32_t header_bytes = 0;
  std::uint32_t local = 0;  ///< index inside its segment
  std::uint32_t first_token = 0;
  std::uint32_t tokens = 0;
  std::uint8_t kind = 0;
  std::vector<std::int32_t> label;
};

/// Where the rows of one plane begin in every segment file.
struct DiskPlane {
  std::uint32_t layer = 0;
  Plane plane = Plane::key;
  std::uint32_t row_bytes = 0;
  std::uint64_t offset = 0;
};

[[nodiscard]] std::vector<std::string> segment_files(const std::string& store);
[[nodiscard]] std::vector<DiskPlane> planes_of(const std::string& segment_file);
[[nodiscard]] std::vector<DiskBlock> blocks_of(const std::string& segment_file);
/// The block of `store` that begins at `first_token` and whose label is there in `tokens`.
[[nodiscard]] DiskBlock find_block(const std::string& store, Tokens tokens,
                                   std::uint32_t first_token);
/// Offset of a row of `block` in its file.
[[nodiscard]] std::uint64_t row_offset(const DiskBlock& block, std::uint32_t block_tokens,
                                       std::uint32_t layer, Plane plane, std::uint32_t token);

[[nodiscard]] std::vector<std::byte> read_file(const std::string& path);
void write_file(const std::string& path, std::span<const std::byte> bytes);
/// Changes one byte in place, past the store and its checksums.
void flip_byte(const std::string& path, std::uint64_t offset, unsigned mask = 0x10);
void overwrite(const std::string& path, std::uint64_t offset, std::span<const std::byte> bytes);

[[nodiscard]] std::uint64_t sum_of_sizes(const std::string& directory);
[[nodiscard]] std::uint64_t allocated_bytes(const std::string& directory);
/// How many files below `directory` contain these bytes anywhere.
[[nodiscard]] std::size_t files_with(const std::string& directory,
                                     std::span<const std::byte> bytes);
/// Copies a whole tree: modes and sparse files kept, new inodes.
void copy_tree(const std::string& from, const std::string& to);

}  // namespace esker::test
