#include <esker/geometry.hpp>

#include "base/error.hpp"

namespace esker {

namespace {

using detail::fail;

bool printable(std::string_view text) {
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x20 || byte == 0x7F) return false;
  }
  return true;
}

std::string quoted(std::string_view text) { return '"' + std::string(text.substr(0, 64)) + '"'; }

}  // namespace

Result<void> ModelId::set(std::string_view key, std::string_view value) {
  if (key.empty() || key.find('=') != std::string_view::npos || !printable(key)) {
    return fail(Errc::invalid, "model id: the key " + quoted(printable(key) ? key : "?") +
                                   " must be non-empty text without '=' and control characters");
  }
  if (!printable(value)) {
    return fail(Errc::invalid,
                "model id: the value of " + quoted(key) + " holds control characters");
  }
  const auto old = entries_.find(key);
  const std::size_t old_bytes = old == entries_.end() ? 0 : key.size() + old->second.size() + 2;
  const std::size_t new_bytes = text().size() - old_bytes + key.size() + value.size() + 2;
  if (new_bytes > max_text_bytes) {
    return fail(Errc::invalid, "model id: " + std::to_string(new_bytes) +
                                   " bytes of text, at most " + std::to_string(max_text_bytes) +
                                   " fit; use digests");
  }
  entries_.insert_or_assign(std::string(key), std::string(value));
  return {};
}

Result<ModelId> ModelId::parse(std::string_view text) {
  ModelId id;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.empty()) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      return fail(Errc::invalid, "model id: the line " + quoted(printable(line) ? line : "?") +
                                     " is not of the form key=value");
    }
    const std::string_view key = line.substr(0, equals);
    if (id.entries_.find(key) != id.entries_.end()) {
      return fail(Errc::invalid, "model id: the key " + quoted(key) + " stands twice");
    }
    if (auto done = id.set(key, line.substr(equals + 1)); !done) {
      return tl::make_unexpected(std::move(done).error());
    }
  }
  return id;
}

std::string_view ModelId::get(std::string_view key) const noexcept {
  const auto entry = entries_.find(key);
  return entry == entries_.end() ? std::string_view{} : std::string_view(entry->second);
}

std::string ModelId::text() const {
  std::string out;
  for (const auto& [key, value] : entries_) out.append(key).append("=").append(value).append("\n");
  return out;
}

std::vector<std::string> ModelId::differing_keys(const ModelId& other) const {
  std::vector<std::string> keys;
  auto mine = entries_.begin();
  auto theirs = other.entries_.begin();
  while (mine != entries_.end() || theirs != other.entries_.end()) {
    if (theirs == other.entries_.end() || (mine != entries_.end() && mine->first < theirs->first)) {
      keys.push_back((mine++)->first);
    } else if (mine == entries_.end() || theirs->first < mine->first) {
      keys.push_back((theirs++)->first);
    } else {
      if (mine->second != theirs->second) keys.push_back(mine->first);
      ++mine;
      ++theirs;
    }
  }
  return keys;
}

std::string ModelId::difference(const ModelId& other) const {
  std::string named;
  for (const std::string& key : differing_keys(other)) {
    named.append(named.empty() ? "" : "; ").append(key).append(": \"").append(get(key));
    named.append("\" and \"").append(other.get(key)).append("\"");
  }
  return named;
}

}  // namespace esker
