// Invariants
// 1. What passes here can be encoded: the format's limits are checked nowhere later.
#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "catalog/area.hpp"
#include "catalog/file_names.hpp"
#include "format/session_file.hpp"

namespace esker::detail {

namespace {

/// The beginning of a text that may be anything, in quotes: fit for a message.
std::string shown(std::string_view text) {
  constexpr std::size_t most = 2 * max_attachment_label_bytes;
  std::string clean = "\"";
  for (const char letter : text.substr(0, most)) {
    clean.push_back(letter >= ' ' && letter <= '~' ? letter : '?');
  }
  return clean + (text.size() > most ? "…\"" : "\"");
}

}  // namespace

Result<void> check_session_name(std::string_view name) {
  if (name.empty() || name.size() > max_session_name_bytes) {
    return fail(Errc::invalid, "the name of a session has " + std::to_string(name.size()) +
                                   " bytes, allowed are 1…" +
                                   std::to_string(max_session_name_bytes));
  }
  if (!is_plain_text(name)) {
    return fail(Errc::invalid,
                "the name of a session is not UTF-8, or has control characters in it");
  }
  return {};
}

Result<void> check_attachment_label(std::string_view label) {
  const bool letters = std::all_of(label.begin(), label.end(), is_plain_letter);
  if (!label.empty() && label.size() <= max_attachment_label_bytes && letters) return {};
  return fail(Errc::invalid, "the label of an attachment, " + shown(label) + ", has " +
                                 std::to_string(label.size()) + " bytes" +
                                 (letters ? "" : ", some of other letters") + ", allowed are 1…" +
                                 std::to_string(max_attachment_label_bytes) +
                                 " of A-Z a-z 0-9 _ -");
}

Result<void> check_metadata(const SessionMetadata& metadata) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : metadata) {
    if (key.empty()) return fail(Errc::invalid, "a key of the metadata is empty");
    if (!is_plain_text(key)) {
      return fail(Errc::invalid,
                  "a key of the metadata is not UTF-8, or has control characters in it");
    }
    if (!is_plain_text(value)) {
      return fail(Errc::invalid, "the value of \"" + key +
                                     "\" in the metadata is not UTF-8, or has control characters "
                                     "in it");
    }
    bytes += key.size() + value.size();
  }
  if (bytes <= max_metadata_bytes) return {};
  return fail(Errc::invalid, "the metadata of a session has " + std::to_string(bytes) +
                                 " bytes of keys and values, allowed are " +
                                 std::to_string(max_metadata_bytes));
}

Result<void> check_record(const SessionRecord& record) {
  if (auto ok = check_session_name(record.name); !ok) return ok;
  if (auto ok = check_metadata(record.metadata); !ok) return ok;
  if (record.name_space.size() > max_session_namespace_bytes) {
    return fail(Errc::invalid,
                "the namespace of a session has " + std::to_string(record.name_space.size()) +
                    " bytes, allowed are 0…" + std::to_string(max_session_namespace_bytes));
  }
  if (record.tokens.size() > max_session_tokens) {
    return fail(Errc::invalid, "a session has " + std::to_string(record.tokens.size()) +
                                   " tokens, allowed are " + std::to_string(max_session_tokens));
  }
  return {};
}

}  // namespace esker::detail
