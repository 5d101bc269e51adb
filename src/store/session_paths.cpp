// Invariants
// 1. Looking leaves no pin and no stamp behind.
#include "store/session_paths.hpp"

#include "index/chain_hash.hpp"
#include "store/walk.hpp"

namespace esker::detail {

PinnedPath::PinnedPath(Core& core, Tokens tokens, std::string_view name_space) noexcept
    : core_(core), body_(core.bodies.take()) {
  if (body_ == nullptr || name_space.size() > max_namespace_bytes) return;
  Walk walked;
  if (!walk(core_, tokens, name_space, *body_, walked)) return;
  if (!walked.partial.found) return;
  // Without memory for one more block the path just ends before it.
  static_cast<void>(append(core_, *body_, walked.partial.found, walked.partial.common));
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

std::vector<SessionRecord> readable_sessions(const Core& core, bool only_kept) {
  std::vector<SessionRecord> records;
  auto files = session_files(core, false);
  if (!files) return records;
  auto names = files->names();
  if (!names) return records;
  for (const std::string& name : *names) {
    if (only_kept && !files->is_kept(name)) continue;
    if (auto record = files->read(name)) records.push_back(std::move(*record));
  }
  return records;
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
