#include "format/session_file.hpp"

#include <cstring>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "format/session_frame.hpp"

namespace esker::detail {

namespace {

constexpr std::string_view magic = "ESKERSES";
constexpr std::uint32_t flag_kept = 1;
constexpr std::size_t entry_header_bytes = 4;  // two lengths of 16 bits
constexpr std::size_t checksum_offset = offsetof(SessionHeader, checksum);

std::uint64_t file_checksum(std::span<const std::byte> file, const Uuid& uuid) {
  constexpr std::uint64_t zero = 0;
  StreamingHash hash(xxh3_of(uuid));
  hash.update(file.first(checksum_offset));
  hash.update(std::as_bytes(std::span(&zero, 1)));
  hash.update(file.subspan(checksum_offset + sizeof zero));
  return hash.digest();
}

std::uint64_t text_bytes(const SessionHeader& header) {
  return align_up(std::uint64_t{header.name_bytes} + header.namespace_bytes + header.metadata_bytes,
                  8);
}

std::size_t metadata_bytes(const SessionMetadata& metadata) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : metadata) bytes += entry_header_bytes + key.size() + value.size();
  return bytes;
}

/// Puts pieces one behind the other into a file whose size is known.
class Pieces {
 public:
  explicit Pieces(std::span<std::byte> file) noexcept : rest_(file) {}
  void put(std::span<const std::byte> bytes) noexcept {
    if (!bytes.empty()) std::memcpy(rest_.data(), bytes.data(), bytes.size());
    rest_ = rest_.subspan(bytes.size());
  }
  void put(std::string_view text) noexcept { put(std::as_bytes(std::span(text))); }
  void put(const SessionMetadata& metadata) noexcept {
    for (const auto& [key, value] : metadata) {
      const std::array<std::uint16_t, 2> sizes{static_cast<std::uint16_t>(key.size()),
                                               static_cast<std::uint16_t>(value.size())};
      put(std::as_bytes(std::span(sizes)));
      put(key);
      put(value);
    }
  }

 private:
  std::span<std::byte> rest_;
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Walks the entries; every length is compared with what is left before it is used.
Result<SessionMetadata> read_metadata(std::span<const std::byte> bytes, std::uint32_t entries,
                                      std::string_view path) {
  SessionMetadata metadata;
  std::size_t payload = 0;
  for (std::uint32_t i = 0; i < entries; ++i) {
    std::array<std::uint16_t, 2> sizes{};
    if (bytes.size() < sizeof sizes) return session_damage(path, "metadata", "too short", "whole");
    std::memcpy(sizes.data(), bytes.data(), sizeof sizes);
    bytes = bytes.subspan(sizeof sizes);
    if (bytes.size() < std::size_t{sizes[0]} + sizes[1]) {
      return session_damage(path, "metadata", "too short", "whole");
    }
    std::string key = text_of(bytes.first(sizes[0]));
    std::string value = text_of(bytes.subspan(sizes[0], sizes[1]));
    bytes = bytes.subspan(std::size_t{sizes[0]} + sizes[1]);
    payload += key.size() + value.size();
    const bool ascending = metadata.empty() || metadata.rbegin()->first < key;
    if (key.empty() || !ascending || !is_plain_text(key) || !is_plain_text(value)) {
      return session_damage(path, "metadata", "a bad key or value", "ascending keys of plain text");
    }
    metadata.emplace_hint(metadata.end(), std::move(key), std::move(value));
  }
  if (!bytes.empty() || payload > max_metadata_bytes) {
    return session_damage(path, "metadata_bytes", "more than the entries have", "as the entries");
  }
  return metadata;
}

Result<void> check_fields(const SessionHeader& header, std::string_view path) {
  if ((header.flags & ~flag_kept) != 0) {
    return session_damage(path, "flags", hex(header.flags), "0 or 1");
  }
  if (header.state_suffix == 0) {
    return session_damage(path, "state_suffix", "0", "a random number");
  }
  if ((header.token_suffix == 0) != (header.token_file_tokens == 0)) {
    return session_damage(path, "token_file_tokens", std::to_string(header.token_file_tokens),
                          "0 without a token file, and only then");
  }
  if (header.token_suffix == 0 && header.token_hash != 0) {
    return session_damage(path, "token_hash", hex(header.token_hash), "0 without a token file");
  }
  return {};
}

Result<void> read_texts(const SessionHeader& header, std::span<const std::byte> texts,
                        std::string_view path, SessionContent& out) {
  out.name = text_of(texts.first(header.name_bytes));
  out.name_space = text_of(texts.subspan(header.name_bytes, header.namespace_bytes));
  const std::size_t at = std::size_t{header.name_bytes} + header.namespace_bytes;
  if (!is_plain_text(out.name)) {
    return session_damage(path, "name", "not plain text", "UTF-8 without control characters");
  }
  auto metadata =
      read_metadata(texts.subspan(at, header.metadata_bytes), header.metadata_entries, path);
  if (!metadata) return tl::make_unexpected(std::move(metadata).error());
  out.metadata = std::move(*metadata);
  if (!all_zero(texts.subspan(at + header.metadata_bytes))) {
    return session_damage(path, "the space after the metadata", "not zero", "zero");
  }
  return {};
}

SessionHeader header_of(const SessionContent& content, const Uuid& uuid) {
  SessionHeader header{};
  std::memcpy(header.magic.data(), magic.data(), magic.size());
  header.write_version = session_format_version;
  header.read_version = session_format_version;
  header.uuid = uuid;
  header.revision = content.revision;
  header.created_unix_ns = content.created_unix_ns;
  header.state_suffix = content.state_suffix;
  header.token_suffix = content.token_suffix;
  header.token_hash = content.token_hash;
  header.token_file_tokens = content.token_file_tokens;
  header.inline_tokens = static_cast<std::uint32_t>(content.inline_tokens.size());
  header.keep_max_bytes = content.keep_max_bytes;
  header.time_to_live_s = content.time_to_live_s;
  header.metadata_bytes = static_cast<std::uint32_t>(metadata_bytes(content.metadata));
  header.metadata_entries = static_cast<std::uint32_t>(content.metadata.size());
  header.priority = content.priority;
  header.flags = content.kept ? flag_kept : 0;
  header.name_bytes = static_cast<std::uint32_t>(content.name.size());
  header.namespace_bytes = static_cast<std::uint32_t>(content.name_space.size());
  header.dropped_paths = static_cast<std::uint32_t>(content.dropped_paths.size());
  return header;
}

}  // namespace

Result<std::uint64_t> session_file_bytes(const SessionHeader& header, std::string_view path) {
  if (header.name_bytes == 0 || header.name_bytes > max_session_name_bytes) {
    return session_damage(path, "name_bytes", std::to_string(header.name_bytes), "1…64");
  }
  if (header.namespace_bytes > max_session_namespace_bytes) {
    return session_damage(path, "namespace_bytes", std::to_string(header.namespace_bytes), "0…64");
  }
  if (header.metadata_entries > max_metadata_bytes ||
      header.metadata_bytes >
          max_metadata_bytes + entry_header_bytes * std::size_t{header.metadata_entries}) {
    return session_damage(path, "metadata_bytes", std::to_string(header.metadata_bytes),
                          "at most 16 KiB of keys and values");
  }
  if (std::uint64_t{header.token_file_tokens} + header.inline_tokens > max_session_tokens) {
    return session_damage(
        path, "token_file_tokens + inline_tokens",
        std::to_string(std::uint64_t{header.token_file_tokens} + header.inline_tokens),
        "at most " + std::to_string(max_session_tokens));
  }
  if (header.dropped_paths > max_dropped_paths) {
    return session_damage(path, "dropped_paths", std::to_string(header.dropped_paths),
                          "at most " + std::to_string(max_dropped_paths));
  }
  return sizeof(SessionHeader) + text_bytes(header) + std::uint64_t{4} * header.inline_tokens +
         std::uint64_t{8} * header.dropped_paths;
}

std::vector<std::byte> encode_session(const SessionContent& content, const Uuid& uuid) {
  SessionHeader header = header_of(content, uuid);
  const std::size_t ids_offset = sizeof header + text_bytes(header);
  std::vector<std::byte> file(ids_offset + 4 * content.inline_tokens.size() +
                              8 * content.dropped_paths.size());
  Pieces pieces(file);
  pieces.put(std::as_bytes(std::span(&header, 1)));
  pieces.put(content.name);
  pieces.put(content.name_space);
  pieces.put(content.metadata);
  Pieces numbers{std::span(file).subspan(ids_offset)};
  numbers.put(std::as_bytes(std::span(content.inline_tokens)));
  numbers.put(std::as_bytes(std::span(content.dropped_paths)));
  header.checksum = file_checksum(file, uuid);
  std::memcpy(file.data() + checksum_offset, &header.checksum, sizeof header.checksum);
  return file;
}

Result<SessionContent> decode_session(std::span<const std::byte> file, const FileOrigin& origin) {
  const std::string_view path = origin.path;
  SessionHeader header;
  if (file.size() < sizeof header) {
    return session_damage(path, "file size", std::to_string(file.size()),
                          "at least " + std::to_string(sizeof header));
  }
  std::memcpy(&header, file.data(), sizeof header);
  auto framed = check_session_frame(header, magic, file_checksum(file, origin.uuid), origin);
  if (!framed) return tl::make_unexpected(std::move(framed).error());
  auto bytes = session_file_bytes(header, path);
  if (!bytes) return tl::make_unexpected(std::move(bytes).error());
  if (*bytes != file.size()) {
    return session_damage(path, "file size", std::to_string(file.size()), std::to_string(*bytes));
  }
  if (auto ok = check_fields(header, path); !ok) return tl::make_unexpected(ok.error());
  SessionContent out;
  const std::span texts = file.subspan(sizeof header, text_bytes(header));
  if (auto ok = read_texts(header, texts, path, out); !ok) return tl::make_unexpected(ok.error());
  out.inline_tokens.resize(header.inline_tokens);
  out.dropped_paths.resize(header.dropped_paths);
  const std::span<const std::byte> numbers = file.subspan(sizeof header + texts.size());
  const std::size_t ids_bytes = std::size_t{4} * header.inline_tokens;
  if (ids_bytes != 0) std::memcpy(out.inline_tokens.data(), numbers.data(), ids_bytes);
  if (header.dropped_paths != 0) {
    std::memcpy(out.dropped_paths.data(), numbers.data() + ids_bytes, numbers.size() - ids_bytes);
  }
  out.revision = header.revision;
  out.created_unix_ns = header.created_unix_ns;
  out.keep_max_bytes = header.keep_max_bytes;
  out.time_to_live_s = header.time_to_live_s;
  out.priority = header.priority;
  out.kept = (header.flags & flag_kept) != 0;
  out.state_suffix = header.state_suffix;
  out.token_suffix = header.token_suffix;
  out.token_hash = header.token_hash;
  out.token_file_tokens = header.token_file_tokens;
  return out;
}

}  // namespace esker::detail
