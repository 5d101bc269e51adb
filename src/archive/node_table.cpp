// Invariants
// 1. Every parent has a lower number than its children: walks towards the root end.
// 2. Slots are entered in the order of numbers, also when they grow, so the last ones can be taken
//    out again without breaking the probe sequence of others.
// 3. Memory is taken before anything is changed, so that running out of it changes nothing.
// 4. The hash only finds candidates; labels are compared.
#include "archive/node_table.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "archive/node_rules.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/random.hpp"
#include "index/label.hpp"

namespace esker::detail {

NodeTable::NodeTable(std::uint32_t block_tokens, std::uint32_t namespaces)
    : block_tokens_(block_tokens), seed_(random_u64()), roots_(namespaces, no_node) {}

std::span<const std::byte> NodeTable::label(std::uint32_t node) const noexcept {
  const std::uint64_t begin = node == 0 ? 0 : label_ends_[node - 1];
  return std::span(labels_).subspan(begin, label_ends_[node] - begin);
}

std::uint64_t NodeTable::key_of(std::uint32_t parent, std::uint32_t name_space, BlockKind kind,
                                std::span<const std::byte> label) const noexcept {
  const std::uint32_t above = parent == no_node ? name_space : parent;
  const std::uint64_t place = std::uint64_t{above} << 2 | (parent == no_node ? 2U : 0U) |
                              (kind == BlockKind::key ? 1U : 0U);
  return xxh3(label, xxh3_of(place, seed_));
}

std::optional<std::uint32_t> NodeTable::child(std::uint32_t parent, std::uint32_t name_space,
                                              BlockKind kind,
                                              std::span<const std::byte> wanted) const noexcept {
  if (slots_.empty()) return std::nullopt;
  const std::uint64_t key = key_of(parent, name_space, kind, wanted);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = key & mask; slots_[slot] != no_node; slot = (slot + 1) & mask) {
    const std::uint32_t number = slots_[slot];
    const Node& node = nodes_[number];
    if (keys_[number] != key || node.parent != parent || node.kind != kind) continue;
    if (parent == no_node && node.name_space != name_space) continue;
    const auto found = label(number);
    if (std::equal(found.begin(), found.end(), wanted.begin(), wanted.end())) return number;
  }
  return std::nullopt;
}

std::uint32_t NodeTable::first_child(std::uint32_t parent,
                                     std::uint32_t name_space) const noexcept {
  if (parent != no_node) return nodes_[parent].first_child;
  return name_space < roots_.size() ? roots_[name_space] : no_node;
}

void NodeTable::enter(std::uint32_t node) noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = keys_[node] & mask;
  while (slots_[slot] != no_node) slot = (slot + 1) & mask;
  slots_[slot] = node;
}

void NodeTable::make_room(std::size_t nodes, std::size_t label_bytes) {
  const auto room = [](auto& list, std::size_t more) {
    const std::size_t wanted = list.size() + more;
    if (wanted > list.capacity()) list.reserve(std::max(wanted, 2 * list.capacity()));
  };
  room(nodes_, nodes);
  room(keys_, nodes);
  room(label_ends_, nodes);
  room(labels_, label_bytes);
  std::size_t slots = std::max<std::size_t>(1024, slots_.size());
  while (slots < 2 * (nodes_.size() + nodes)) slots *= 2;
  if (slots == slots_.size()) return;
  slots_ = std::vector<std::uint32_t>(slots, no_node);
  for (std::uint32_t node = 0; node < size(); ++node) enter(node);
}

Result<void> NodeTable::add(const ArchiveSpan& span, Errc code, std::string_view where) {
  if (span.first_node != size()) {
    return fail_field(code, where, "first node", std::to_string(span.first_node),
                      std::to_string(size()));
  }
  std::size_t label_bytes = 0;
  for (const ArchiveNode& node : span.nodes) label_bytes += node.label.size();
  make_room(span.nodes.size(), label_bytes);
  for (std::uint32_t i = 0; i < span.nodes.size(); ++i) {
    const std::uint32_t number = span.first_node + i;
    if (auto ok = add_one(span.nodes[i], number, span.first_node, code, where); !ok) {
      drop_from(span.first_node);
      return ok;
    }
  }
  return {};
}

Result<void> NodeTable::add_one(const ArchiveNode& node, std::uint32_t number,
                                std::uint32_t span_first, Errc code, std::string_view where) {
  const NodeFault fault{code, where, number};
  if (node.name_space >= roots_.size()) {
    return fault("name_space", std::to_string(node.name_space),
                 "below " + std::to_string(roots_.size()));
  }
  if (node.parent == no_node) {
    if (node.first_token != 0) return fault("first_token", std::to_string(node.first_token), "0");
  } else {
    if (auto ok = check_parent_number(node, number, span_first, fault); !ok) return ok;
    const Node& parent = nodes_[node.parent];
    if (parent.kind != BlockKind::tokens || parent.tokens != block_tokens_) {
      return fault("parent", std::to_string(node.parent), "a full block of tokens");
    }
    if (node.name_space != parent.name_space) {
      return fault("name_space", std::to_string(node.name_space),
                   std::to_string(parent.name_space) + ", as its parent");
    }
    const std::uint64_t first = std::uint64_t{parent.first_token} + block_tokens_;
    if (node.first_token != first || first + node.tokens > UINT32_MAX) {
      return fault("first_token", std::to_string(node.first_token), std::to_string(first));
    }
  }
  if (const auto twin = child(node.parent, node.name_space, node.kind, node.label)) {
    return fault("label", "that of node " + std::to_string(*twin),
                 "another than those of its siblings");
  }
  // From here on nothing allocates: `make_room` did.
  labels_.insert(labels_.end(), node.label.begin(), node.label.end());
  label_ends_.push_back(labels_.size());
  keys_.push_back(key_of(node.parent, node.name_space, node.kind, node.label));
  std::uint32_t& first =
      node.parent == no_node ? roots_[node.name_space] : nodes_[node.parent].first_child;
  const std::uint32_t sibling = first;
  first = number;
  nodes_.push_back({node.parent, node.name_space, node.first_token, node.tokens, node.path_hash,
                    node.published_unix_ns, node.used_unix_ns, no_node, sibling, node.kind,
                    node.has_rows});
  enter(number);
  return {};
}

void NodeTable::drop_from(std::uint32_t first) noexcept {
  while (size() > first) {
    const std::uint32_t number = size() - 1;
    const Node& node = nodes_[number];
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = keys_[number] & mask;
    while (slots_[slot] != number) slot = (slot + 1) & mask;
    slots_[slot] = no_node;
    (node.parent == no_node ? roots_[node.name_space] : nodes_[node.parent].first_child) =
        node.next_sibling;
    nodes_.pop_back();
    keys_.pop_back();
    label_ends_.pop_back();
    labels_.resize(label_ends_.empty() ? 0 : label_ends_.back());
  }
}

std::vector<std::uint32_t> NodeTable::path_to(std::uint32_t node) const {
  std::vector<std::uint32_t> path;
  for (std::uint32_t at = node; at != no_node; at = nodes_[at].parent) path.push_back(at);
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<std::int32_t> NodeTable::tokens_of(std::uint32_t node) const {
  std::vector<std::int32_t> tokens;
  if (nodes_[node].kind != BlockKind::tokens) return tokens;
  tokens.resize(nodes_[node].end_token());
  for (std::uint32_t at = node; at != no_node; at = nodes_[at].parent) {
    std::memcpy(tokens.data() + nodes_[at].first_token, label(at).data(), label(at).size());
  }
  return tokens;
}

NodeTable::Match NodeTable::match(Tokens prompt, std::uint32_t name_space) const {
  return match_in(prompt, name_space, true);
}

NodeTable::Match NodeTable::match_spelled(Tokens prompt, std::uint32_t name_space) const {
  return match_in(prompt, name_space, false);
}

NodeTable::Match NodeTable::match_in(Tokens prompt, std::uint32_t name_space,
                                     bool only_rows) const {
  Match match;
  std::uint32_t parent = no_node;
  while (match.tokens < prompt.size()) {
    const Tokens rest = prompt.subspan(match.tokens);
    if (rest.size() >= block_tokens_) {
      const auto full =
          child(parent, name_space, BlockKind::tokens, std::as_bytes(rest.first(block_tokens_)));
      if (full && (nodes_[*full].has_rows || !only_rows)) {
        match.nodes.push_back(*full);
        match.tokens += block_tokens_;
        parent = *full;
        continue;
      }
    }
    std::uint32_t best = no_node;
    std::uint32_t most = 0;
    for (std::uint32_t at = first_child(parent, name_space); at != no_node;
         at = nodes_[at].next_sibling) {
      if (nodes_[at].kind != BlockKind::tokens || (only_rows && !nodes_[at].has_rows)) continue;
      const std::uint32_t same = common_tokens(label(at), rest);
      if (same > most) {
        most = same;
        best = at;
      }
    }
    if (best != no_node) {
      match.nodes.push_back(best);
      match.tokens += most;
    }
    break;
  }
  return match;
}

}  // namespace esker::detail
