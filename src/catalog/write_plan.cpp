// Invariants
// 1. When the session file gets its name, all that it names has been on the disk before.
// 2. What the old session file names is removed only when the new one is on the disk.
#include "catalog/write_plan.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "catalog/file_names.hpp"
#include "catalog/room.hpp"

namespace esker::detail {

std::size_t inline_limit(const TokenSource& source) noexcept {
  return std::max<std::size_t>(inline_tokens_max, source.held / 4);
}

WritePlan plan_write(SessionContent content, std::span<const std::int32_t> tokens,
                     const TokenSource& source, std::size_t inline_max, const Uuid& uuid) {
  WritePlan plan;
  const auto end =
      std::mismatch(tokens.begin(), tokens.end(), source.ids.begin(), source.ids.end());
  auto from_file = static_cast<std::size_t>(end.first - tokens.begin());
  content.token_suffix = from_file == 0 ? 0 : source.suffix;
  if (tokens.size() - from_file > inline_max) {
    from_file = tokens.size();
    content.token_suffix = fresh_suffix();
    plan.new_token_file = tokens;
    plan.disk_bytes = disk_bytes_of(sizeof(TokenFileHeader) + tokens.size_bytes());
  }
  content.token_file_tokens = static_cast<std::uint32_t>(from_file);
  content.token_hash = from_file == 0 ? 0 : xxh3(std::as_bytes(tokens.first(from_file)));
  content.inline_tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(from_file),
                               tokens.end());
  plan.session_file = encode_session(content, uuid);
  plan.disk_bytes += disk_bytes_of(plan.session_file.size());
  plan.content = std::move(content);
  return plan;
}

Result<void> carry_out(const SessionArea& area, const WritePlan& plan, NewParts& parts,
                       const Naming& naming) {
  const std::string stem = encode_session_name(plan.content.name);
  if (!plan.new_token_file.empty()) {
    const std::string name = token_file_name(stem, plan.content.token_suffix);
    const TokenFileHeader header = encode_token_header(plan.new_token_file, area.place.uuid);
    auto written = write_new_file(area, name, std::as_bytes(std::span(&header, 1)),
                                  std::as_bytes(plan.new_token_file), {false, {}});
    if (!written) return tl::make_unexpected(std::move(written).error());
    if (!*written) return fail(Errc::busy, name + ": another process made this file just now");
    parts.add(name);
  }
  if (!parts.empty()) {
    if (auto done = area.directory.sync(); !done) return done;
  }
  const std::string file = session_file_name(stem);
  auto named = write_new_file(area, file, plan.session_file, {}, naming);
  if (!named) return tl::make_unexpected(std::move(named).error());
  if (!*named) {
    return fail(Errc::invalid, "there is a session \"" + plan.content.name + "\" already");
  }
  parts.keep();
  if (auto done = area.directory.sync(); !done) return done;
  remove_stale_parts(area, stem, plan.content.token_suffix, plan.content.state_suffix);
  return {};
}

}  // namespace esker::detail
