#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "catalog/session_files.hpp"
#include "catch.hpp"
#include "support/disk.hpp"
#include "support/stores.hpp"
#include "support/temp_dir.hpp"

namespace esker::test {

using detail::AttachmentRecord;
using detail::SessionFiles;
using detail::SessionRecord;

/// A directory that stands for a store, and its sessions.
class Catalog {
 public:
  explicit Catalog(std::string path, std::uint64_t share_bytes = 64 * mib)
      : path_(std::move(path)),
        store_(need(detail::Directory::create(path_, Sharing::owner))),
        files_(need(SessionFiles::open(store_, place(share_bytes), true))) {}

  static SessionFiles::Place place(std::uint64_t share_bytes = 64 * mib) {
    SessionFiles::Place place;
    place.uuid.fill(0x5A);
    place.share_bytes = share_bytes;
    return place;
  }

  [[nodiscard]] const SessionFiles& operator*() const noexcept { return files_; }
  [[nodiscard]] const SessionFiles* operator->() const noexcept { return &files_; }
  [[nodiscard]] const detail::Directory& store() const noexcept { return store_; }
  [[nodiscard]] std::string path(const std::string& file = {}) const {
    return path_ + "/sessions" + (file.empty() ? "" : "/" + file);
  }
  /// Names in the directory, sorted; those that end with `end`.
  [[nodiscard]] std::vector<std::string> listing(const std::string& end = {}) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(end)) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string path_;
  detail::Directory store_;
  SessionFiles files_;
};

/// Tokens that tell their place and their seed.
inline std::vector<std::int32_t> some_tokens(std::size_t count, std::int32_t seed = 1) {
  std::vector<std::int32_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) {
    tokens[i] = seed * 1'000'003 + static_cast<std::int32_t>(i) * 7;
  }
  return tokens;
}

inline SessionRecord record_of(const std::string& name, std::size_t tokens, std::int32_t seed = 1) {
  SessionRecord record;
  record.name = name;
  record.name_space = "tenant";
  record.tokens = some_tokens(tokens, seed);
  record.metadata = {{"model", "small"}, {"title", "Grüße, 世界"}, {"void", ""}};
  record.priority = -3;
  record.time_to_live_s = 86'400;
  record.created_unix_ns = 1'700'000'000'123'456'789U;
  record.revision = 41;
  record.kept = true;
  record.keep_max_bytes = 12'345;
  record.dropped_paths = {0x1122334455667788U, 7};
  return record;
}

inline std::vector<std::byte> some_bytes(std::size_t count, unsigned seed) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>((i * 31 + seed * 17 + i / 251) & 0xFFU);
  }
  return bytes;
}

inline bool same_content(const SessionRecord& a, const SessionRecord& b) {
  return a.name == b.name && a.name_space == b.name_space && a.tokens == b.tokens &&
         a.metadata == b.metadata && a.priority == b.priority &&
         a.time_to_live_s == b.time_to_live_s && a.created_unix_ns == b.created_unix_ns &&
         a.revision == b.revision && a.kept == b.kept && a.keep_max_bytes == b.keep_max_bytes &&
         a.dropped_paths == b.dropped_paths;
}

}  // namespace esker::test
