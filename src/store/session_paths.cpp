// Invariants
// 1. Looking leaves no pin and no stamp behind.
#include "store/session_paths.hpp"

#include "index/chain_hash.hpp"
#include "store/walk.hpp"

namespace esker::detail {

PinnedPath::PinnedPath(Core& core, Tokens tokens, std::string_view name_space) noexcept
    : core_(core), body_(core.bodies.take()) {
  if (body_ == nullptr || name_space.size() > max_namespace_bytes) return;
  complete_ = pin_stored(core, tokens, name_space, *body_);
}

PinnedPath::~PinnedPath() {
  if (body_ == nullptr) return;
  unpin_all(core_, *body_);
  core_.bodies.give(body_);
}

Result<SessionFiles> session_files(const Core& core, bool create) {
  const Superblock& store = core.superblock;
  return SessionFiles::open(core.directory, {store.uuid, store.sharing, store.sessions_bytes},
                            create);
}

bool lasting(const Error& error) noexcept {
  return error.code == Errc::missing || error.code == Errc::corrupt ||
         error.code == Errc::incompatible;
}

ReadableSessions readable_sessions(const Core& core, bool only_kept) {
  ReadableSessions found;
  auto files = session_files(core, false);
  auto names = files ? files->names() : Result<std::vector<std::string>>{};
  if (!files || !names) {
    found.complete = false;
    return found;
  }
  for (const std::string& name : *names) {
    auto wanted = only_kept ? files->is_kept(name) : Result<bool>(true);
    if (wanted && !*wanted) continue;
    auto record = wanted ? files->read(name) : tl::make_unexpected(wanted.error());
    if (record) {
      found.records.push_back(std::move(*record));
    } else if (!lasting(record.error())) {
      found.complete = false;
    }
  }
  return found;
}

bool partial_end_stands(Core& core, Tokens tokens, std::string_view name_space) noexcept {
  PrefixBody* body = core.bodies.take();
  if (body == nullptr) return false;
  bool stands = false;
  Walk walked;
  if (walk(core, tokens, name_space, *body, walked)) {
    if (walked.partial.found) core.pins.unpin(walked.partial.found.pinned.block);
    const std::size_t whole = body->blocks.size() * std::size_t{core.block_tokens()};
    const Tokens rest = tokens.subspan(whole);
    if (!rest.empty() && rest.size() < core.block_tokens()) {
      const auto label = label_of(rest);
      const std::uint64_t hash = chain::extend(walked.position.hash, label);
      const Found end = find_label(core, walked.position, hash, label, BlockKind::tokens);
      stands = static_cast<bool>(end);
      if (stands) core.pins.unpin(end.pinned.block);
    }
  }
  unpin_all(core, *body);
  core.bodies.give(body);
  return stands;
}

std::uint64_t sequence_hash(const Core& core, Tokens tokens, std::string_view name_space) noexcept {
  std::uint64_t hash = chain::root(core.superblock.secret, name_space);
  while (!tokens.empty()) {
    const std::size_t now = std::min<std::size_t>(tokens.size(), core.block_tokens());
    hash = chain::extend(hash, label_of(tokens.first(now)));
    tokens = tokens.subspan(now);
  }
  return hash;
}

}  // namespace esker::detail
