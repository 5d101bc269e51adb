#pragma once

#include <sys/stat.h>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "catalog_support.hpp"

namespace esker::test {

inline std::uint64_t uuid_seed() {
  const auto uuid = Catalog::place().uuid;
  return detail::xxh3(std::as_bytes(std::span(uuid)));
}

template <class T>
inline void put_at(std::vector<std::byte>& file, std::size_t offset, T value) {
  REQUIRE(file.size() >= offset + sizeof value);
  std::memcpy(file.data() + offset, &value, sizeof value);
}

inline void put_text(std::vector<std::byte>& file, std::size_t offset, const std::string& text) {
  REQUIRE(file.size() >= offset + text.size());
  std::memcpy(file.data() + offset, text.data(), text.size());
}

inline void seal_session(std::vector<std::byte>& file) {
  put_at<std::uint64_t>(file, 184, 0);
  put_at(file, 184, detail::xxh3(file, uuid_seed()));
}

inline void seal_header(std::vector<std::byte>& file, std::size_t offset) {
  put_at(file, offset, detail::xxh3(std::span(file).first(offset), uuid_seed()));
}

inline void start_file(std::vector<std::byte>& file, const std::string& magic) {
  put_text(file, 0, magic);
  put_at<std::uint32_t>(file, 8, 1);
  put_at<std::uint32_t>(file, 12, 1);
  for (std::size_t i = 32; i < 48; ++i) file[i] = std::byte{0x5A};
}

/// A file that did not come from the library, with the mode that one of its own has.
inline void plant(const Catalog& catalog, const std::string& name,
                  std::span<const std::byte> bytes) {
  const std::string path = catalog.path(name);
  std::filesystem::remove(path);
  write_file(path, bytes);
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
}

inline Error read_error(const Catalog& catalog, const std::string& name) {
  const Result<SessionRecord> read = catalog->read(name);
  REQUIRE_FALSE(read);
  return read.error();
}

}  // namespace esker::test
