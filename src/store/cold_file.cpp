// Invariants
// 1. A node is part of a path only if its label equals our tokens and its parent, in the same file,
//    is the node matched one step before. Hashes only find it.
// 2. A file counts only if its salt is the store's secret: one that was copied in from elsewhere
//    proves nothing.
// 3. Every node that is kept here was checked: its parent has a lower number and a whole block, and
//    its hash is that of its path.
#include "store/cold_file.hpp"

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "index/chain_hash.hpp"

namespace esker::detail {

namespace {

Lossy lossy_of(const ModelId& model) {
  const std::string_view named = model.get("lossy");
  if (named == name(Lossy::q8)) return Lossy::q8;
  return named == name(Lossy::q4) ? Lossy::q4 : Lossy::none;
}

Result<ArchiveReader> open_reader(const Directory& cold, const Superblock& store,
                                  const std::string& name) {
  auto file = cold.open_file(name, O_RDONLY, store.sharing);
  if (!file) {
    if (file.error().os_error == ENOENT) file.error().code = Errc::missing;
    return failure_of(file);
  }
  auto reader = ArchiveReader::open(std::move(*file));
  if (!reader) return reader;
  if (auto ours = check_cold_head(*reader, store); !ours) return failure_of(ours);
  return reader;
}

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

SnapshotHead cold_head(const Superblock& store) {
  SnapshotHead head;
  const std::array<std::uint64_t, 2> id{random_u64(), random_u64()};
  std::memcpy(head.id.data(), id.data(), sizeof id);
  head.salt = store.secret;
  head.created_unix_ns = unix_ns();
  head.use = SnapshotUse::cold;
  head.lossy = lossy_of(store.model);
  head.geometry = store.geometry;
  head.model = store.model;
  return head;
}

Result<void> check_cold_head(const ArchiveReader& reader, const Superblock& store) {
  const SnapshotHead& head = reader.head();
  const bool ours = head.use == SnapshotUse::cold && head.salt == store.secret &&
                    head.geometry == store.geometry && head.model == store.model;
  if (ours) return {};
  return fail_field(Errc::incompatible, reader.label(), "use, salt, geometry or model",
                    "not this store's", "this store's",
                    "it was not made here and is not used: remove it");
}

Result<std::shared_ptr<const ColdFile>> ColdFile::load(const Directory& cold,
                                                       const Superblock& store,
                                                       const std::string& name) {
  auto reader = open_reader(cold, store, name);
  if (!reader) return failure_of(reader);
  auto index = reader->index();
  if (!index) return failure_of(index);
  auto file = std::make_shared<ColdFile>();
  file->name_ = name;
  file->id_ = reader->head().id;
  file->file_bytes_ = reader->file_bytes();
  for (const ArchiveNamespace& name_space : reader->namespaces()) {
    if (!name_space.named) {
      return fail_field(Errc::corrupt, reader->label(), "namespace", "a digest", "a name",
                        "the file is damaged and not used");
    }
    file->namespaces_.push_back(name_space.bytes);
  }
  file->spans_ = std::move(index->spans);
  for (std::uint32_t i = 0; i < file->spans_.size(); ++i) {
    auto span = reader->span_at(file->spans_[i]);
    if (!span) return failure_of(span);
    if (auto added = file->add_span(i, *span, store, reader->label()); !added) {
      return failure_of(added);
    }
  }
  file->sort();
  return std::shared_ptr<const ColdFile>(std::move(file));
}

Result<ArchiveReader> ColdFile::reader(const Directory& cold, const Superblock& store) const {
  auto reader = open_reader(cold, store, name_);
  if (reader && reader->head().id != id_) {
    return fail(Errc::missing, reader->label() + ": another file has taken its place");
  }
  return reader;
}

std::string ColdFile::fault(const ArchiveNode& node, const Superblock& store) const {
  const std::uint32_t block_tokens = store.geometry.block_tokens;
  const bool key = node.kind == BlockKind::key;
  if (node.name_space >= namespaces_.size()) return "its namespace does not exist";
  if (node.tokens == 0 || node.tokens > block_tokens) return "its tokens are out of range";
  if (node.label.size() > UINT16_MAX) return "its label is too long";
  if (key) {
    const bool flat = node.parent == no_node && node.first_token == 0;
    const bool short_key = !node.label.empty() && node.label.size() <= max_key_bytes;
    return flat && short_key && node.tokens == block_tokens ? "" : "a key must be a root";
  }
  if (node.label.size() != std::size_t{4} * node.tokens) return "its label has another length";
  if (node.parent == no_node) return node.first_token == 0 ? "" : "it begins behind 0";
  if (node.parent >= nodes_.size()) return "its parent comes after it";
  const ColdNode& parent = nodes_[node.parent];
  const bool hangs = parent.kind == BlockKind::tokens && parent.tokens == block_tokens &&
                     parent.name_space == node.name_space &&
                     parent.first_token + block_tokens == node.first_token;
  return hangs ? "" : "it does not follow its parent";
}

Result<void> ColdFile::add_span(std::uint32_t index, const ArchiveSpan& span,
                                const Superblock& store, const std::string& path) {
  std::uint32_t row = 0;
  for (const ArchiveNode& node : span.nodes) {
    const std::string wrong = fault(node, store);
    if (!wrong.empty()) {
      return fail(Errc::corrupt, path + ": node " + std::to_string(nodes_.size()) + ": " + wrong +
                                     "; the file is damaged and not used");
    }
    const std::uint64_t root = chain::root(store.secret, namespaces_[node.name_space]);
    const std::uint64_t above = node.parent == no_node ? root : nodes_[node.parent].path_hash;
    const std::string_view key(reinterpret_cast<const char*>(node.label.data()), node.label.size());
    const std::uint64_t hash =
        node.kind == BlockKind::key ? chain::key(root, key) : chain::extend(above, node.label);
    if (hash != node.path_hash) {
      return fail(Errc::corrupt, path + ": node " + std::to_string(nodes_.size()) +
                                     ": its path hash is not that of its path; the file is "
                                     "damaged and not used");
    }
    nodes_.push_back({node.parent, node.name_space, node.first_token, node.tokens, hash,
                      node.published_unix_ns, node.used_unix_ns, index, row, labels_.size(),
                      static_cast<std::uint16_t>(node.label.size()), node.kind, node.has_rows});
    labels_.insert(labels_.end(), node.label.begin(), node.label.end());
    if (!node.has_rows) continue;
    row += node.tokens;
    ++blocks_;
  }
  return {};
}

void ColdFile::sort() {
  by_hash_.resize(nodes_.size());
  std::iota(by_hash_.begin(), by_hash_.end(), 0U);
  by_parent_ = by_hash_;
  std::sort(by_hash_.begin(), by_hash_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return nodes_[a].path_hash < nodes_[b].path_hash;
  });
  std::stable_sort(by_parent_.begin(), by_parent_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return nodes_[a].parent < nodes_[b].parent;
  });
  bad_ = std::make_unique<std::atomic<bool>[]>(nodes_.size());
}

std::uint32_t ColdFile::find(const Step& step) const noexcept {
  auto at = std::lower_bound(
      by_hash_.begin(), by_hash_.end(), step.hash,
      [this](std::uint32_t node, std::uint64_t hash) { return nodes_[node].path_hash < hash; });
  for (; at != by_hash_.end() && nodes_[*at].path_hash == step.hash; ++at) {
    const ColdNode& node = nodes_[*at];
    if (node.kind == step.kind && node.parent == step.parent &&
        namespaces_[node.name_space] == step.name_space && same_bytes(label(*at), step.label)) {
      return *at;
    }
  }
  return no_node;
}

std::span<const std::uint32_t> ColdFile::children(std::uint32_t parent) const noexcept {
  const auto below = [this](std::uint32_t node, std::uint32_t wanted) {
    return nodes_[node].parent < wanted;
  };
  const auto above = [this](std::uint32_t wanted, std::uint32_t node) {
    return wanted < nodes_[node].parent;
  };
  const auto first = std::lower_bound(by_parent_.begin(), by_parent_.end(), parent, below);
  const auto last = std::upper_bound(first, by_parent_.end(), parent, above);
  return {by_parent_.data() + (first - by_parent_.begin()), static_cast<std::size_t>(last - first)};
}

}  // namespace esker::detail
