// Invariants
// 1. Every length in a payload is compared with what is left of it before it is used.
// 2. A session that is read could have been written by this Esker: names, metadata and labels keep
//    the rules of sessions in a store.
#include <cstring>
#include <set>
#include <string>

#include "archive/bytes_in.hpp"
#include "archive/payloads.hpp"
#include "base/error.hpp"
#include "catalog/session_files.hpp"
#include "format/session_file.hpp"
#include "format/snapshot_parts.hpp"

namespace esker::detail {

namespace {

/// The same rules for a caller's session and for a file's; only the code differs.
Result<void> check_session(const ArchiveSession& session, std::size_t namespaces, Errc code,
                           std::string_view where) {
  const auto about = [&](Result<void> checked) -> Result<void> {
    if (checked) return {};
    return fail(code, std::string(where) + ": " + checked.error().message);
  };
  if (auto ok = about(check_session_name(session.name)); !ok) return ok;
  if (auto ok = about(check_metadata(session.metadata)); !ok) return ok;
  if (session.name_space >= namespaces) {
    return fail_field(code, where, "name_space", std::to_string(session.name_space),
                      "below " + std::to_string(namespaces));
  }
  if (session.tokens.size() > snapshot_max_session_tokens) {
    return fail_field(code, where, "tokens", std::to_string(session.tokens.size()),
                      "at most " + std::to_string(snapshot_max_session_tokens));
  }
  return {};
}

Result<void> check_state(const ArchiveState& state, const ArchiveSession& session, Errc code,
                         std::string_view where) {
  if (auto ok = check_attachment_label(state.label); !ok) {
    return fail(code, std::string(where) + ": " + ok.error().message);
  }
  if (state.position > session.tokens.size()) {
    return fail_field(
        code, where, "position", std::to_string(state.position),
        "at most " + std::to_string(session.tokens.size()) + ", its session's tokens");
  }
  return {};
}

/// "key NUL value NUL …", sorted, into pairs.
Result<SessionMetadata> decode_metadata(std::string_view text, std::string_view where) {
  SessionMetadata metadata;
  const auto bad = [where](std::string_view found, std::string_view expected) {
    return fail_field(Errc::corrupt, where, "metadata", found, expected);
  };
  while (!text.empty()) {
    const std::size_t key_end = text.find('\0');
    const std::size_t value_end =
        key_end == std::string_view::npos ? key_end : text.find('\0', key_end + 1);
    if (value_end == std::string_view::npos) return bad("cut off", "pairs that end with NUL");
    const std::string_view key = text.substr(0, key_end);
    if (!metadata.empty() && metadata.rbegin()->first >= key) return bad("not sorted", "sorted");
    metadata.emplace_hint(metadata.end(), key, text.substr(key_end + 1, value_end - key_end - 1));
    text.remove_prefix(value_end + 1);
  }
  return metadata;
}

Result<void> check_session_head(const SnapshotSessionHead& head, std::string_view where) {
  const auto bad = [where](std::string_view field, std::uint64_t found, std::string_view expected) {
    return fail_field(Errc::corrupt, where, field, std::to_string(found), expected);
  };
  if (head.kept > 1) return bad("kept", head.kept, "0 or 1");
  if (head.reserved != 0) return bad("reserved", head.reserved, "0");
  // NULs come on top of keys and values, at most one for each of their bytes but one.
  if (head.metadata_bytes > 3 * max_metadata_bytes) {
    return bad("metadata_bytes", head.metadata_bytes, std::to_string(3 * max_metadata_bytes));
  }
  if (head.tokens > snapshot_max_session_tokens) {
    return bad("tokens", head.tokens, "at most " + std::to_string(snapshot_max_session_tokens));
  }
  return {};
}

}  // namespace

Result<std::vector<std::byte>> encode_session(const ArchiveSession& session, std::size_t states,
                                              std::size_t namespaces, std::string_view where) {
  auto ok = check_session(session, namespaces, Errc::invalid, where);
  if (!ok) return failure_of(ok);
  if (states > UINT16_MAX) {
    return fail_field(Errc::invalid, where, "states", std::to_string(states), "at most 65535");
  }
  std::string metadata;
  for (const auto& [key, value] : session.metadata) {
    metadata.append(key).push_back('\0');
    metadata.append(value).push_back('\0');
  }
  SnapshotSessionHead head{};
  head.tokens = static_cast<std::uint32_t>(session.tokens.size());
  head.name_space = session.name_space;
  head.priority = session.priority;
  head.kept = session.kept ? 1 : 0;
  head.name_bytes = static_cast<std::uint8_t>(session.name.size());
  head.states = static_cast<std::uint16_t>(states);
  head.time_to_live_s = session.time_to_live_s;
  head.created_unix_ns = session.created_unix_ns;
  head.used_unix_ns = session.used_unix_ns;
  head.keep_max_bytes = session.keep_max_bytes;
  head.metadata_bytes = static_cast<std::uint32_t>(metadata.size());
  BytesOut out;
  out.put(head);
  out.text(session.name);
  out.text(metadata);
  out.pad(4);
  out.append(std::as_bytes(std::span(session.tokens)));
  return std::move(out).bytes();
}

Result<DecodedSession> decode_session(std::span<const std::byte> payload, std::size_t namespaces,
                                      std::string_view where) {
  BytesIn in(payload);
  SnapshotSessionHead head{};
  if (!in.take(head)) {
    return fail_field(Errc::corrupt, where, "payload_bytes", std::to_string(payload.size()),
                      "at least " + std::to_string(sizeof head));
  }
  if (auto ok = check_session_head(head, where); !ok) return failure_of(ok);
  const auto name = in.bytes(head.name_bytes);
  const auto metadata = name ? in.bytes(head.metadata_bytes) : std::nullopt;
  if (!metadata) {
    return fail_field(
        Errc::corrupt, where, "name and metadata", "cut off",
        std::to_string(head.name_bytes) + " and " + std::to_string(head.metadata_bytes) + " bytes");
  }
  if (!in.padding(4)) return fail_field(Errc::corrupt, where, "padding", "not zero", "zeros");
  const auto tokens = in.bytes(std::uint64_t{4} * head.tokens);
  if (!tokens) {
    return fail_field(Errc::corrupt, where, "tokens", "cut off", std::to_string(head.tokens));
  }
  if (auto ok = in.at_end(where); !ok) return failure_of(ok);
  DecodedSession out;
  out.states = head.states;
  ArchiveSession& session = out.session;
  session.name = text_of(*name);
  session.name_space = head.name_space;
  session.tokens.resize(head.tokens);
  if (head.tokens > 0) std::memcpy(session.tokens.data(), tokens->data(), tokens->size());
  auto pairs = decode_metadata(text_of(*metadata), where);
  if (!pairs) return failure_of(pairs);
  session.metadata = std::move(*pairs);
  session.priority = head.priority;
  session.time_to_live_s = head.time_to_live_s;
  session.created_unix_ns = head.created_unix_ns;
  session.used_unix_ns = head.used_unix_ns;
  session.kept = head.kept == 1;
  session.keep_max_bytes = head.keep_max_bytes;
  if (auto ok = check_session(session, namespaces, Errc::corrupt, where); !ok) {
    return failure_of(ok);
  }
  return out;
}

Result<std::vector<std::byte>> encode_state(const ArchiveState& state,
                                            const ArchiveSession& session, std::string_view where) {
  auto ok = check_state(state, session, Errc::invalid, where);
  if (!ok) return failure_of(ok);
  SnapshotStateHead head{};
  head.position = state.position;
  head.label_bytes = static_cast<std::uint8_t>(state.label.size());
  BytesOut out;
  out.put(head);
  out.text(state.label);
  out.pad(8);
  return std::move(out).bytes();
}

Result<ArchiveState> decode_state(std::vector<std::byte> payload, const ArchiveSession& session,
                                  std::string_view where) {
  const auto bad = [where](std::string_view field, std::string_view found,
                           std::string_view expected) {
    return fail_field(Errc::corrupt, where, field, found, expected);
  };
  BytesIn in(payload);
  SnapshotStateHead head{};
  if (!in.take(head)) return bad("payload_bytes", std::to_string(payload.size()), "at least 16");
  if (!all_zero(std::as_bytes(std::span(head.reserved)))) {
    return bad("reserved", "not zero", "zero");
  }
  const auto label = in.bytes(head.label_bytes);
  if (!label || !in.padding(8)) return bad("label", "cut off, or padding not zero", "1…32 letters");
  ArchiveState state;
  state.label = text_of(*label);
  state.position = head.position;
  if (auto ok = check_state(state, session, Errc::corrupt, where); !ok) return failure_of(ok);
  payload.erase(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(in.position()));
  state.bytes = std::move(payload);
  return state;
}

}  // namespace esker::detail
