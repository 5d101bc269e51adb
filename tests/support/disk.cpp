#include "support/disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace esker::test {

namespace {

namespace fs = std::filesystem;

template <class T>
T read_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset + sizeof(T) > bytes.size()) throw std::runtime_error("a segment file is too short");
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class Visit>
void each_file(const std::string& directory, Visit&& visit) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
    struct stat status {};
    if (::lstat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      visit(entry.path().string(), status);
    }
  }
}

DiskBlock parse(const std::string& file, std::span<const std::byte> bytes, std::uint64_t at,
                std::uint32_t local) {
  DiskBlock block;
  block.file = file;
  block.header_offset = at;
  block.local = local;
  block.header_bytes = read_at<std::uint32_t>(bytes, at + 4);
  block.first_token = read_at<std::uint32_t>(bytes, at + 72);
  block.tokens = read_at<std::uint32_t>(bytes, at + 76);
  block.kind = read_at<std::uint8_t>(bytes, at + 98);
  for (std::uint32_t i = 0; block.kind == 1 && i < block.tokens; ++i) {
    block.label.push_back(read_at<std::int32_t>(bytes, at + 192 + std::uint64_t{i} * 4));
  }
  return block;
}

}  // namespace

std::vector<std::string> segment_files(const std::string& store) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(store + "/segments")) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<DiskPlane> planes_of(const std::string& segment_file) {
  const std::vector<std::byte> bytes = read_file(segment_file);
  std::vector<DiskPlane> planes(read_at<std::uint32_t>(bytes, 44));
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const std::uint64_t at = 128 + 32 * i;
    planes[i].layer = read_at<std::uint32_t>(bytes, at);
    planes[i].plane = read_at<std::uint8_t>(bytes, at + 4) == 0 ? Plane::key : Plane::value;
    planes[i].row_bytes = read_at<std::uint32_t>(bytes, at + 8);
    planes[i].offset = read_at<std::uint64_t>(bytes, at + 16);
  }
  return planes;
}

std::vector<DiskBlock> blocks_of(const std::string& segment_file) {
  const std::vector<std::byte> bytes = read_file(segment_file);
  const auto count = read_at<std::uint32_t>(bytes, 36);
  const auto stride = read_at<std::uint32_t>(bytes, 48);
  const auto begin = read_at<std::uint64_t>(bytes, 56);
  std::vector<DiskBlock> blocks;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t at = begin + std::uint64_t{i} * stride;
    if (std::memcmp(bytes.data() + at, "EBLK", 4) == 0) {
      blocks.push_back(parse(segment_file, bytes, at, i));
    }
  }
  return blocks;
}

DiskBlock find_block(const std::string& store, Tokens tokens, std::uint32_t first_token) {
  for (const std::string& file : segment_files(store)) {
    for (const DiskBlock& block : blocks_of(file)) {
      if (block.first_token != first_token || block.label.empty()) continue;
      if (first_token + block.label.size() > tokens.size()) continue;
      if (std::equal(block.label.begin(), block.label.end(), tokens.begin() + first_token)) {
        return block;
      }
    }
  }
  throw std::runtime_error("no block header for token " + std::to_string(first_token));
}

std::uint64_t row_offset(const DiskBlock& block, std::uint32_t block_tokens, std::uint32_t layer,
                         Plane plane, std::uint32_t token) {
  for (const DiskPlane& candidate : planes_of(block.file)) {
    if (candidate.layer == layer && candidate.plane == plane) {
      const std::uint64_t row = std::uint64_t{block.local} * block_tokens + token;
      return candidate.offset + row * candidate.row_bytes;
    }
  }
  throw std::runtime_error("the segment file has no such plane");
}

std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  if (!out) throw std::runtime_error("cannot write " + path);
}

void overwrite(const std::string& path, std::uint64_t offset, std::span<const std::byte> bytes) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const ssize_t count = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  ::close(file);
  if (count != static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error("cannot change " + path);
}

void flip_byte(const std::string& path, std::uint64_t offset, unsigned mask) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  unsigned char byte = 0;
  const ssize_t count = ::pread(file, &byte, 1, static_cast<off_t>(offset));
  ::close(file);
  if (count != 1) throw std::runtime_error("no such byte in " + path);
  const auto changed = static_cast<std::byte>(byte ^ mask);
  overwrite(path, offset, std::span(&changed, 1));
}

std::uint64_t sum_of_sizes(const std::string& directory) {
  std::uint64_t sum = 0;
  each_file(directory, [&](const std::string&, const struct stat& status) {
    sum += static_cast<std::uint64_t>(status.st_size);
  });
  return sum;
}

std::uint64_t allocated_bytes(const std::string& directory) {
  std::uint64_t sum = 0;
  each_file(directory, [&](const std::string&, const struct stat& status) {
    sum += static_cast<std::uint64_t>(status.st_blocks) * 512;
  });
  return sum;
}

std::size_t files_with(const std::string& directory, std::span<const std::byte> bytes) {
  std::size_t files = 0;
  each_file(directory, [&](const std::string& path, const struct stat&) {
    const std::vector<std::byte> all = read_file(path);
    if (std::search(all.begin(), all.end(), bytes.begin(), bytes.end()) != all.end()) ++files;
  });
  return files;
}

void copy_tree(const std::string& from, const std::string& to) {
  const std::string command = "cp -a '" + from + "' '" + to + "'";
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

}  // namespace esker::test
