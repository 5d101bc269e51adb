// Invariants
// 1. Parts get their names under a new session before its session file, and lose those under an
//    old one after its session file: killed at any point, what a session file names is there.
// 2. A parent keeps its revision and its time of use, whatever a fork does with its files.
#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "catalog/area.hpp"
#include "catalog/file_names.hpp"
#include "catalog/load.hpp"
#include "catalog/records.hpp"
#include "catalog/room.hpp"
#include "catalog/write_plan.hpp"

namespace esker::detail {

namespace {

Failure taken(std::string_view name) {
  return fail(Errc::invalid, "there is a session \"" + std::string(name) + "\" already");
}

/// The names of a session's parts.
struct PartNames {
  std::string stem;
  std::uint64_t token_suffix = 0;
  std::uint64_t state_suffix = 0;
};

PartNames parts_of(const SessionContent& content) {
  return {encode_session_name(content.name), content.token_suffix, content.state_suffix};
}

/// Links the state files of one session, and its token file where `to` has one, for another.
Result<void> link_parts(const SessionArea& area, const PartNames& from, const PartNames& to,
                        NewParts& made) {
  if (to.token_suffix != 0) {
    const std::string name = token_file_name(to.stem, to.token_suffix);
    made.add(name);
    auto done = link_part(area, token_file_name(from.stem, from.token_suffix), name);
    if (!done) return done;
  }
  auto files = area.directory.names(from.stem + "." + hex(from.state_suffix) + ".");
  if (!files) return tl::make_unexpected(std::move(files).error());
  for (const std::string& file : *files) {
    const SessionFileName part = parse_file_name(file);
    if (part.kind != SessionFileName::Kind::state) continue;
    const std::string name = state_file_name(to.stem, to.state_suffix, part.label);
    made.add(name);
    if (auto done = link_part(area, file, name); !done) return done;
  }
  return {};
}

/// A parent and its tokens, and how it is written anew if it needs a token file.
struct Parent {
  WholeSession whole;
  std::vector<std::int32_t> tokens;
  std::optional<WritePlan> promotion;

  /// The token file that its branches share, as soon as the promotion has been carried out.
  [[nodiscard]] TokenSource shared() const {
    if (promotion) return {tokens, static_cast<std::uint32_t>(tokens.size()), fresh_suffix()};
    const std::size_t count = whole.token_file.ids.size();
    return {std::span(tokens).first(count), whole.token_file.held, fresh_suffix()};
  }
  [[nodiscard]] std::uint64_t freed_bytes() const {
    if (!promotion) return 0;
    return disk_bytes_of(whole.session.status) + whole.token_file.only_here_bytes;
  }
  [[nodiscard]] const SessionContent& content() const noexcept {
    return promotion ? promotion->content : whole.session.content;
  }
};

Result<Parent> load_parent(const SessionArea& area, std::string_view name) {
  auto whole = load_whole(area, name);
  if (!whole) return tl::make_unexpected(std::move(whole).error());
  Parent parent{std::move(*whole), {}, {}};
  parent.tokens = parent.whole.tokens();
  const SessionContent& content = parent.whole.session.content;
  if (content.inline_tokens.size() > inline_tokens_of_parent) {
    parent.promotion = plan_write(content, parent.tokens, {}, 0, area.place.uuid);
  }
  return parent;
}

}  // namespace

Result<void> SessionFiles::write_fork(std::string_view parent_name,
                                      const SessionRecord& child) const {
  return guarded([&]() -> Result<void> {
    const SessionArea area{directory_, place_};
    if (auto ok = require_writable(area); !ok) return ok;
    if (auto ok = check_record(child); !ok) return ok;
    if (has(child.name)) return taken(child.name);
    auto parent = load_parent(area, parent_name);
    if (!parent) return tl::make_unexpected(std::move(parent).error());
    if (child.tokens.size() < parent->tokens.size() ||
        !std::equal(parent->tokens.begin(), parent->tokens.end(), child.tokens.begin())) {
      return fail(Errc::invalid, "the fork \"" + child.name + "\" does not begin with the " +
                                     std::to_string(parent->tokens.size()) + " tokens of \"" +
                                     std::string(parent_name) + "\"");
    }
    SessionContent content = content_of(child);
    content.state_suffix = fresh_suffix();
    const TokenSource source = parent->shared();
    const WritePlan plan =
        plan_write(std::move(content), child.tokens, source, inline_limit(source), place_.uuid);
    const std::uint64_t written =
        plan.disk_bytes + (parent->promotion ? parent->promotion->disk_bytes : 0);
    const auto growth =
        static_cast<std::int64_t>(written) - static_cast<std::int64_t>(parent->freed_bytes());
    if (auto ok = require_room(area, growth, directory_.path()); !ok) return ok;
    if (parent->promotion) {
      NewParts parts(area);
      const Naming naming{true, parent->whole.session.status.st_mtim};
      auto done = carry_out(area, *parent->promotion, parts, naming);
      if (!done) return done;
    }
    NewParts parts(area);
    PartNames names = parts_of(plan.content);
    if (!plan.uses_source()) names.token_suffix = 0;
    if (auto done = link_parts(area, parts_of(parent->content()), names, parts); !done) return done;
    return carry_out(area, plan, parts, {false, {}});
  });
}

Result<void> SessionFiles::rename(std::string_view from, std::string_view to) const {
  return guarded([&]() -> Result<void> {
    const SessionArea area{directory_, place_};
    if (auto ok = require_writable(area); !ok) return ok;
    if (auto ok = check_session_name(to); !ok) return ok;
    if (has(to)) return taken(to);
    auto whole = load_whole(area, from);
    if (!whole) return tl::make_unexpected(std::move(whole).error());
    const SessionContent& old = whole->session.content;
    WritePlan plan;
    plan.content = old;
    plan.content.name = to;
    plan.content.state_suffix = fresh_suffix();
    if (old.token_suffix != 0) plan.content.token_suffix = fresh_suffix();
    plan.session_file = encode_session(plan.content, place_.uuid);
    const auto growth = static_cast<std::int64_t>(disk_bytes_of(plan.session_file.size())) -
                        static_cast<std::int64_t>(disk_bytes_of(whole->session.status));
    if (auto ok = require_room(area, growth, directory_.path()); !ok) return ok;
    NewParts parts(area);
    auto done = link_parts(area, parts_of(old), parts_of(plan.content), parts);
    if (done) done = carry_out(area, plan, parts, {false, whole->session.status.st_mtim});
    return done ? remove(from) : done;
  });
}

}  // namespace esker::detail
