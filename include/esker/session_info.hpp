#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace esker {

/// Free `key=value` pairs that a session carries.
using SessionMetadata = std::map<std::string, std::string, std::less<>>;

/// How a session is started.
/// Threads:  a plain value.
/// Lifetime: read during the call only.
/// Errors:   `Session::create` refuses a namespace that is too long, and bad metadata.
/// Cost:     none.
struct SessionOptions {
  std::string_view name_space;       ///< the root of its path, fixed for ever; see esker::Namespace
  SessionMetadata metadata;          ///< at most 16 KiB in all
  std::int32_t priority = 0;         ///< which kept sessions come first when not all have room
  std::uint64_t time_to_live_s = 0;  ///< since its last use; 0: for ever
};

/// Engine state beside a session.
struct AttachmentInfo {
  std::string label;
  std::uint32_t position = 0;  ///< tokens that it belongs to
  std::uint64_t bytes = 0;
  bool available = false;  ///< same tokens, all of them reusable
  std::string damage;      ///< what is wrong with its file, or ""; lists look at headers only
};

/// What is known of a session.
/// Threads:  a plain value.
/// Lifetime: owns its text; true at the moment it was made.
/// Errors:   `damage` says what is wrong with a session that cannot be read, and then only `name`
///           and `file_bytes` mean anything.
/// Cost:     none.
struct SessionInfo {
  std::string name;
  std::string damage;  ///< file, field, found, expected; "" for a good session
  std::string name_space;
  std::uint32_t tokens = 0;           ///< of the whole sequence
  std::uint32_t reusable_tokens = 0;  ///< leading ones that are stored now
  std::uint32_t kept_tokens = 0;      ///< of these: in blocks that are never evicted
  bool kept = false;
  std::uint64_t keep_max_bytes = 0;  ///< as given to `keep`; 0: half of the capacity
  std::uint64_t path = 0;            ///< of the stored part; see Prefix::path
  std::int32_t priority = 0;
  std::uint64_t time_to_live_s = 0;  ///< 0: for ever
  std::uint64_t created_unix_ns = 0;
  std::uint64_t used_unix_ns =
      0;                         ///< last created, resumed, saved; with a time to live, appended to
  std::uint64_t revision = 0;    ///< changes of its file so far
  std::uint64_t file_bytes = 0;  ///< of all its files; a shared token file counts in each
  bool expired = false;          ///< its time to live is over: it can only be removed
  SessionMetadata metadata;
  std::vector<AttachmentInfo> attachments;
};

}  // namespace esker
