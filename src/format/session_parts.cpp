#include <algorithm>
#include <cstring>

#include "base/hash.hpp"
#include "format/session_file.hpp"
#include "format/session_frame.hpp"

namespace esker::detail {

namespace {

constexpr std::string_view token_magic = "ESKERTOK";
constexpr std::string_view attachment_magic = "ESKERATT";

/// Both headers end with their checksum.
template <class Header>
std::uint64_t header_checksum(const Header& header, const Uuid& uuid) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&header, 1));
  return xxh3(bytes.first(offsetof(Header, checksum)), xxh3_of(uuid));
}

template <class Header>
Header start_header(std::string_view magic, const Uuid& uuid) {
  Header header{};
  std::memcpy(header.magic.data(), magic.data(), magic.size());
  header.write_version = session_format_version;
  header.read_version = session_format_version;
  header.uuid = uuid;
  return header;
}

/// The label, or "" when length, padding or letters are wrong.
std::string label_of(const AttachmentHeader& header) {
  if (header.label_bytes > header.label.size()) return {};
  std::string label(header.label.data(), header.label_bytes);
  const std::span rest = std::as_bytes(std::span(header.label)).subspan(header.label_bytes);
  return all_zero(rest) ? label : std::string();
}

}  // namespace

TokenFileHeader encode_token_header(std::span<const std::int32_t> ids, const Uuid& uuid) {
  auto header = start_header<TokenFileHeader>(token_magic, uuid);
  header.tokens = static_cast<std::uint32_t>(ids.size());
  header.ids_hash = xxh3(std::as_bytes(ids));
  header.checksum = header_checksum(header, uuid);
  return header;
}

Result<TokenFileContent> decode_token_header(const TokenFileHeader& header,
                                             std::uint64_t file_bytes, const FileOrigin& origin) {
  const std::uint64_t sum = header_checksum(header, origin.uuid);
  if (auto ok = check_session_frame(header, token_magic, sum, origin); !ok) {
    return tl::make_unexpected(std::move(ok).error());
  }
  if (header.tokens == 0 || header.tokens > max_session_tokens || header.reserved0 != 0) {
    return session_damage(origin.path, "tokens", std::to_string(header.tokens),
                          "1…" + std::to_string(max_session_tokens));
  }
  const std::uint64_t expected = sizeof header + std::uint64_t{4} * header.tokens;
  if (file_bytes != expected) {
    return session_damage(origin.path, "file size", std::to_string(file_bytes),
                          std::to_string(expected));
  }
  return TokenFileContent{header.tokens, header.ids_hash};
}

AttachmentHeader encode_attachment_header(const AttachmentContent& content, const Uuid& uuid) {
  auto header = start_header<AttachmentHeader>(attachment_magic, uuid);
  header.path_hash = content.path_hash;
  header.payload_bytes = content.payload_bytes;
  header.payload_hash = content.payload_hash;
  header.position = content.position;
  header.label_bytes = static_cast<std::uint32_t>(content.label.size());
  std::copy(content.label.begin(), content.label.end(), header.label.begin());
  header.checksum = header_checksum(header, uuid);
  return header;
}

Result<AttachmentContent> decode_attachment_header(const AttachmentHeader& header,
                                                   std::uint64_t file_bytes,
                                                   const FileOrigin& origin) {
  const std::uint64_t sum = header_checksum(header, origin.uuid);
  if (auto ok = check_session_frame(header, attachment_magic, sum, origin); !ok) {
    return tl::make_unexpected(std::move(ok).error());
  }
  AttachmentContent out{label_of(header), header.position, header.path_hash, header.payload_bytes,
                        header.payload_hash};
  if (out.label.empty()) return session_damage(origin.path, "label", "not a label", "1…32 letters");
  if (file_bytes < sizeof header || file_bytes - sizeof header != header.payload_bytes) {
    return session_damage(
        origin.path, "file size", std::to_string(file_bytes),
        std::to_string(sizeof header) + " + " + std::to_string(header.payload_bytes));
  }
  return out;
}

}  // namespace esker::detail
