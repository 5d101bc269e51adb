// Invariants
// 1. A file is loaded once and never changes; what is kept of it goes when its name goes.
// 2. A view is only trusted as long as the directory's time stands, and a time that was too fresh
//    when the directory was listed proves nothing: a change in the same tick would not show.
// 3. A file that does not check is named by an event once, and never served by this handle.
#include "store/cold_index.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "index/chain_hash.hpp"
#include "store/cold_files.hpp"
#include "store/core.hpp"
#include "store/walk.hpp"

namespace esker::detail {

namespace {

constexpr std::uint64_t fresh_ns = 100'000'000;  // more than a tick of any kernel

/// Says nothing of the file itself: it is tried again.
bool passing(const Error& error) noexcept {
  return error.code == Errc::no_memory || error.code == Errc::io || error.code == Errc::missing;
}

/// One file's way along a prompt.
struct Trail {
  std::shared_ptr<const ColdFile> file;
  std::vector<std::uint32_t> nodes;  ///< matched, from the root on
};

std::vector<std::uint64_t> hashes_of(const Core& core, Tokens tokens, std::string_view name_space) {
  const std::size_t block_tokens = core.block_tokens();
  std::vector<std::uint64_t> hashes;
  hashes.reserve(tokens.size() / block_tokens);
  std::uint64_t hash = chain::root(core.superblock.secret, name_space);
  for (std::size_t at = 0; at + block_tokens <= tokens.size(); at += block_tokens) {
    hash = chain::extend(hash, label_of(tokens.subspan(at, block_tokens)));
    hashes.push_back(hash);
  }
  return hashes;
}

Trail follow(const std::shared_ptr<const ColdFile>& file, Tokens tokens,
             std::string_view name_space, std::span<const std::uint64_t> hashes,
             std::size_t block_tokens) {
  Trail trail{file, {}};
  std::uint32_t parent = no_node;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const auto label = label_of(tokens.subspan(i * block_tokens, block_tokens));
    const std::uint32_t node =
        file->find({parent, name_space, hashes[i], label, BlockKind::tokens});
    if (node == no_node) break;
    trail.nodes.push_back(node);
    parent = node;
  }
  return trail;
}

ColdPlace place_at(std::span<const Trail> trails, std::size_t block) {
  for (const Trail& trail : trails) {
    if (block < trail.nodes.size() && trail.file->serves(trail.nodes[block])) {
      return {trail.file, trail.nodes[block]};
    }
  }
  return {};
}

/// A lookup finds a block that shares `common` tokens with what is left of a prompt.
bool findable(std::uint32_t common, std::uint32_t block_tokens, const ColdNode& node,
              std::size_t rest) noexcept {
  return common >= std::max(1U, block_tokens / 8) || (common == node.tokens && common == rest);
}

/// The block that shares most with what follows the first `whole` blocks.
ColdPlace find_last(std::span<const Trail> trails, std::size_t whole, Tokens rest,
                    std::string_view name_space, std::uint32_t block_tokens,
                    std::uint32_t& common) {
  ColdPlace best;
  for (const Trail& trail : trails) {
    if (trail.nodes.size() < whole) continue;
    const std::uint32_t parent = whole == 0 ? no_node : trail.nodes[whole - 1];
    for (const std::uint32_t child : trail.file->children(parent)) {
      const ColdNode& node = trail.file->nodes()[child];
      if (node.kind != BlockKind::tokens || !trail.file->serves(child) ||
          trail.file->namespaces()[node.name_space] != name_space) {
        continue;
      }
      const std::uint32_t shared = common_tokens(trail.file->label(child), rest);
      if (shared <= common || !findable(shared, block_tokens, node, rest.size())) continue;
      common = shared;
      best = {trail.file, child};
    }
  }
  return best;
}

void append_label(std::vector<std::int32_t>& tokens, std::span<const std::byte> label) {
  const std::size_t before = tokens.size();
  tokens.resize(before + label.size() / 4);
  std::memcpy(tokens.data() + before, label.data(), label.size());
}

}  // namespace

std::shared_ptr<const Directory> ColdIndex::directory() {
  const std::lock_guard guard(mutex_);
  return directory_;
}

void ColdIndex::look_again() noexcept {
  const std::lock_guard guard(mutex_);
  certain_ = false;
}

bool ColdIndex::find_directory(const Core& core) {
  if (directory_) return true;
  unread_.reset();
  auto found = open_cold(core.directory);
  if (!found) {
    unread_ = std::move(found).error();
    return false;
  }
  if (!*found) return false;
  directory_ = std::make_shared<const Directory>(std::move(**found));
  certain_ = false;
  return true;
}

bool ColdIndex::changed() noexcept {
  struct stat status {};
  if (fstat(directory_->fd(), &status) != 0) return true;
  const std::uint64_t mtime = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                              static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
  const bool same = certain_ && mtime == listed_mtime_ns_;
  const std::uint64_t now = unix_ns();
  certain_ = now > mtime && now - mtime > fresh_ns;
  listed_mtime_ns_ = mtime;
  return !same;
}

void ColdIndex::refresh(const Core& core) {
  auto listed = list_cold(*directory_);
  if (!listed) {
    certain_ = false;
    unread_ = std::move(listed).error();
    return;
  }
  auto next = std::make_shared<ColdView>();
  decltype(files_) files;
  decltype(unusable_) unusable;
  for (const ColdFileStatus& entry : *listed) {
    if (const auto known = unusable_.find(entry.name); known != unusable_.end()) {
      unusable.insert(*known);
      continue;
    }
    if (const auto known = files_.find(entry.name); known != files_.end()) {
      files.insert(*known);
      continue;
    }
    auto loaded = ColdFile::load(*directory_, core.superblock, entry.name);
    if (loaded) {
      files.emplace(entry.name, std::move(*loaded));
    } else if (passing(loaded.error())) {
      certain_ = false;
      if (loaded.error().code != Errc::missing) unread_ = std::move(loaded).error();
    } else {
      const bool foreign = loaded.error().code == Errc::incompatible;
      if (!foreign) core.event(EventKind::cold_damaged, 0, 0, entry.name);
      unusable.emplace(entry.name, foreign ? 0 : std::max<std::uint64_t>(entry.bytes, 1));
    }
  }
  for (const auto& [name, file] : files) next->files.push_back(file);
  for (const auto& [name, bytes] : unusable) {
    if (bytes == 0) continue;
    next->damaged.push_back(name);
    next->damaged_bytes += bytes;
  }
  files_ = std::move(files);
  unusable_ = std::move(unusable);
  view_ = std::move(next);
}

std::shared_ptr<const ColdView> ColdIndex::view(const Core& core) {
  const std::lock_guard guard(mutex_);
  look(core);
  return view_;
}

Result<std::shared_ptr<const ColdView>> ColdIndex::whole_view(const Core& core) {
  const std::lock_guard guard(mutex_);
  certain_ = false;
  look(core);
  if (unread_) return tl::make_unexpected(*unread_);
  return view_;
}

void ColdIndex::look(const Core& core) {
  if (!find_directory(core) || !changed()) return;
  unread_.reset();
  refresh(core);
}

ColdPath find_cold_path(const Core& core, const ColdView& view, Tokens tokens,
                        std::string_view name_space, std::uint32_t whole_blocks,
                        std::uint32_t hot_tokens) {
  const std::uint32_t block_tokens = core.block_tokens();
  const std::vector<std::uint64_t> hashes = hashes_of(core, tokens, name_space);
  std::vector<Trail> trails;
  for (const auto& file : view.files) {
    Trail trail = follow(file, tokens, name_space, hashes, block_tokens);
    if (trail.nodes.size() >= whole_blocks) trails.push_back(std::move(trail));
  }
  ColdPath path;
  path.first_block = whole_blocks;
  std::size_t end = whole_blocks;
  for (; end < hashes.size(); ++end) {
    ColdPlace place = place_at(trails, end);
    if (!place) break;
    path.places.push_back(std::move(place));
  }
  const Tokens whole = tokens.first(end * block_tokens);
  path.tokens.assign(whole.begin(), whole.end());
  const Tokens rest = tokens.subspan(whole.size());
  std::uint32_t common =
      hot_tokens > whole.size() ? hot_tokens - static_cast<std::uint32_t>(whole.size()) : 0;
  ColdPlace last;
  if (!rest.empty()) last = find_last(trails, end, rest, name_space, block_tokens, common);
  if (last) {
    append_label(path.tokens, last.file->label(last.node));
    path.places.push_back(std::move(last));
  }
  return path;
}

std::vector<std::uint64_t> cold_hashes_along(const Core& core, const ColdView& view, Tokens tokens,
                                             std::string_view name_space, bool exact) {
  const std::uint32_t block_tokens = core.block_tokens();
  std::vector<std::uint64_t> hashes = hashes_of(core, tokens, name_space);
  const std::size_t whole = hashes.size();
  const auto rest = label_of(tokens.subspan(whole * block_tokens));
  if (rest.empty()) return hashes;
  for (const auto& file : view.files) {
    const Trail trail =
        follow(file, tokens, name_space, std::span(hashes).first(whole), block_tokens);
    if (trail.nodes.size() < whole) continue;
    for (const std::uint32_t child : file->children(whole == 0 ? no_node : trail.nodes.back())) {
      const auto label = file->label(child);
      const ColdNode& node = file->nodes()[child];
      const bool here =
          node.kind == BlockKind::tokens && file->namespaces()[node.name_space] == name_space &&
          label.size() >= rest.size() && std::equal(rest.begin(), rest.end(), label.begin());
      if (here && (!exact || label.size() == rest.size())) hashes.push_back(node.path_hash);
    }
  }
  return hashes;
}

ColdPlace find_cold_key(const Core& core, const ColdView& view, std::string_view key,
                        std::string_view name_space) {
  const std::uint64_t root = chain::root(core.superblock.secret, name_space);
  const ColdFile::Step step{no_node, name_space, chain::key(root, key),
                            std::as_bytes(std::span(key)), BlockKind::key};
  for (const auto& file : view.files) {
    const std::uint32_t node = file->find(step);
    if (node != no_node && file->serves(node)) return {file, node};
  }
  return {};
}

}  // namespace esker::detail
