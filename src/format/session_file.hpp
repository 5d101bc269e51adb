#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <esker/session_info.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace esker::detail {

/// First bytes of a session file; doc/session_format.md. Name, namespace, metadata, ids and dropped
/// paths follow.
struct SessionHeader {
  std::array<char, 8> magic;
  std::uint32_t write_version;
  std::uint32_t read_version;
  std::uint64_t incompatible_features;
  std::uint64_t compatible_features;
  std::array<std::uint8_t, 16> uuid;
  std::uint64_t revision;
  std::uint64_t created_unix_ns;
  std::uint64_t state_suffix;
  std::uint64_t token_suffix;
  std::uint64_t token_hash;
  std::uint32_t token_file_tokens;
  std::uint32_t inline_tokens;
  std::uint64_t keep_max_bytes;
  std::uint64_t time_to_live_s;
  std::uint32_t metadata_bytes;
  std::uint32_t metadata_entries;
  std::int32_t priority;
  std::uint32_t flags;
  std::uint32_t name_bytes;
  std::uint32_t namespace_bytes;
  std::uint32_t dropped_paths;
  std::array<std::uint8_t, 44> reserved;
  std::uint64_t checksum;
};
static_assert(std::is_trivially_copyable_v<SessionHeader>);
static_assert(sizeof(SessionHeader) == 192);
static_assert(offsetof(SessionHeader, magic) == 0);
static_assert(offsetof(SessionHeader, write_version) == 8);
static_assert(offsetof(SessionHeader, read_version) == 12);
static_assert(offsetof(SessionHeader, incompatible_features) == 16);
static_assert(offsetof(SessionHeader, compatible_features) == 24);
static_assert(offsetof(SessionHeader, uuid) == 32);
static_assert(offsetof(SessionHeader, revision) == 48);
static_assert(offsetof(SessionHeader, created_unix_ns) == 56);
static_assert(offsetof(SessionHeader, state_suffix) == 64);
static_assert(offsetof(SessionHeader, token_suffix) == 72);
static_assert(offsetof(SessionHeader, token_hash) == 80);
static_assert(offsetof(SessionHeader, token_file_tokens) == 88);
static_assert(offsetof(SessionHeader, inline_tokens) == 92);
static_assert(offsetof(SessionHeader, keep_max_bytes) == 96);
static_assert(offsetof(SessionHeader, time_to_live_s) == 104);
static_assert(offsetof(SessionHeader, metadata_bytes) == 112);
static_assert(offsetof(SessionHeader, metadata_entries) == 116);
static_assert(offsetof(SessionHeader, priority) == 120);
static_assert(offsetof(SessionHeader, flags) == 124);
static_assert(offsetof(SessionHeader, name_bytes) == 128);
static_assert(offsetof(SessionHeader, namespace_bytes) == 132);
static_assert(offsetof(SessionHeader, dropped_paths) == 136);
static_assert(offsetof(SessionHeader, reserved) == 140);
static_assert(offsetof(SessionHeader, checksum) == 184);

/// First bytes of a token file; the ids follow.
struct TokenFileHeader {
  std::array<char, 8> magic;
  std::uint32_t write_version;
  std::uint32_t read_version;
  std::uint64_t incompatible_features;
  std::uint64_t compatible_features;
  std::array<std::uint8_t, 16> uuid;
  std::uint32_t tokens;
  std::uint32_t reserved0;
  std::uint64_t ids_hash;
  std::array<std::uint8_t, 24> reserved;
  std::uint64_t checksum;
};
static_assert(std::is_trivially_copyable_v<TokenFileHeader>);
static_assert(sizeof(TokenFileHeader) == 96);
static_assert(offsetof(TokenFileHeader, magic) == 0);
static_assert(offsetof(TokenFileHeader, write_version) == 8);
static_assert(offsetof(TokenFileHeader, read_version) == 12);
static_assert(offsetof(TokenFileHeader, incompatible_features) == 16);
static_assert(offsetof(TokenFileHeader, compatible_features) == 24);
static_assert(offsetof(TokenFileHeader, uuid) == 32);
static_assert(offsetof(TokenFileHeader, tokens) == 48);
static_assert(offsetof(TokenFileHeader, reserved0) == 52);
static_assert(offsetof(TokenFileHeader, ids_hash) == 56);
static_assert(offsetof(TokenFileHeader, reserved) == 64);
static_assert(offsetof(TokenFileHeader, checksum) == 88);

/// First bytes of a state file; the payload follows.
struct AttachmentHeader {
  std::array<char, 8> magic;
  std::uint32_t write_version;
  std::uint32_t read_version;
  std::uint64_t incompatible_features;
  std::uint64_t compatible_features;
  std::array<std::uint8_t, 16> uuid;
  std::uint64_t path_hash;
  std::uint64_t payload_bytes;
  std::uint64_t payload_hash;
  std::uint32_t position;
  std::uint32_t label_bytes;
  std::array<char, 32> label;
  std::array<std::uint8_t, 8> reserved;
  std::uint64_t checksum;
};
static_assert(std::is_trivially_copyable_v<AttachmentHeader>);
static_assert(sizeof(AttachmentHeader) == 128);
static_assert(offsetof(AttachmentHeader, magic) == 0);
static_assert(offsetof(AttachmentHeader, write_version) == 8);
static_assert(offsetof(AttachmentHeader, read_version) == 12);
static_assert(offsetof(AttachmentHeader, incompatible_features) == 16);
static_assert(offsetof(AttachmentHeader, compatible_features) == 24);
static_assert(offsetof(AttachmentHeader, uuid) == 32);
static_assert(offsetof(AttachmentHeader, path_hash) == 48);
static_assert(offsetof(AttachmentHeader, payload_bytes) == 56);
static_assert(offsetof(AttachmentHeader, payload_hash) == 64);
static_assert(offsetof(AttachmentHeader, position) == 72);
static_assert(offsetof(AttachmentHeader, label_bytes) == 76);
static_assert(offsetof(AttachmentHeader, label) == 80);
static_assert(offsetof(AttachmentHeader, reserved) == 112);
static_assert(offsetof(AttachmentHeader, checksum) == 120);

inline constexpr std::uint32_t session_format_version = 1;
inline constexpr std::size_t max_session_name_bytes = 64;
inline constexpr std::size_t max_session_namespace_bytes = 64;
inline constexpr std::size_t max_session_tokens = std::size_t{1} << 26;
inline constexpr std::size_t max_metadata_bytes = 16'384;  ///< keys and values
inline constexpr std::size_t max_dropped_paths = 256;
inline constexpr std::size_t max_attachment_label_bytes = 32;

/// What a session file says, in memory.
struct SessionContent {
  std::string name;
  std::string name_space;
  SessionMetadata metadata;
  std::vector<std::int32_t> inline_tokens;
  std::vector<std::uint64_t> dropped_paths;
  std::uint64_t revision = 0;
  std::uint64_t created_unix_ns = 0;
  std::uint64_t keep_max_bytes = 0;
  std::uint64_t time_to_live_s = 0;
  std::int32_t priority = 0;
  bool kept = false;
  std::uint64_t state_suffix = 0;
  std::uint64_t token_suffix = 0;
  std::uint64_t token_hash = 0;
  std::uint32_t token_file_tokens = 0;
};

struct AttachmentContent {
  std::string label;
  std::uint32_t position = 0;
  std::uint64_t path_hash = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t payload_hash = 0;
};

struct TokenFileContent {
  std::uint32_t tokens = 0;
  std::uint64_t ids_hash = 0;
};

using Uuid = std::array<std::uint8_t, 16>;

/// Which store a file must belong to, and its path for messages.
struct FileOrigin {
  Uuid uuid{};
  std::string_view path;
};

/// Size that a session file must have, from its header alone: what a reader checks before it takes
/// memory for the rest. `Errc::corrupt` for lengths out of range.
[[nodiscard]] Result<std::uint64_t> session_file_bytes(const SessionHeader& header,
                                                       std::string_view path);
/// The content keeps every limit of doc/session_format.md.
[[nodiscard]] std::vector<std::byte> encode_session(const SessionContent& content,
                                                    const Uuid& uuid);
[[nodiscard]] Result<SessionContent> decode_session(std::span<const std::byte> file,
                                                    const FileOrigin& origin);

[[nodiscard]] TokenFileHeader encode_token_header(std::span<const std::int32_t> ids,
                                                  const Uuid& uuid);
/// `file_bytes` is the size of the file.
[[nodiscard]] Result<TokenFileContent> decode_token_header(const TokenFileHeader& header,
                                                           std::uint64_t file_bytes,
                                                           const FileOrigin& origin);

[[nodiscard]] AttachmentHeader encode_attachment_header(const AttachmentContent& content,
                                                        const Uuid& uuid);
[[nodiscard]] Result<AttachmentContent> decode_attachment_header(const AttachmentHeader& header,
                                                                 std::uint64_t file_bytes,
                                                                 const FileOrigin& origin);

}  // namespace esker::detail
