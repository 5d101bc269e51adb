// Invariants
// 1. A node comes after its parent, and no two nodes of one parent have the same label.
// 2. Only namespaces that a chosen node or session needs are there.
#include "snapshot/union_trie.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "index/chain_hash.hpp"

namespace esker::detail {

Result<void> UnionTrie::choose(const std::vector<std::string>& sessions) {
  choose_sessions(sessions);
  for (const std::string& name : sessions) {
    if (session_by_name_.contains(name)) continue;
    return fail(Errc::missing, inputs_.front().source->info().path + ": there is no session \"" +
                                   name + "\"" +
                                   (inputs_.size() > 1 ? ", nor in the other snapshots" : ""));
  }
  for (std::uint32_t input = 0; input < inputs_.size(); ++input) {
    std::vector<bool> wanted(inputs_[input].tables->nodes().size(), sessions.empty());
    if (!sessions.empty()) want_sessions(input, wanted);
    add_nodes(input, wanted);
  }
  return {};
}

void UnionTrie::choose_sessions(const std::vector<std::string>& names) {
  for (std::uint32_t input = 0; input < inputs_.size(); ++input) {
    for (const SnapshotTables::Session& filed : inputs_[input].tables->sessions()) {
      const bool named = std::find(names.begin(), names.end(), filed.session.name) != names.end();
      if (names.empty() || named) add_session(input, filed);
    }
  }
}

void UnionTrie::add_session(std::uint32_t input, const SnapshotTables::Session& filed) {
  const auto number = static_cast<std::uint32_t>(sessions_.size());
  if (!session_by_name_.try_emplace(filed.session.name, number).second) return;
  const auto& namespaces = inputs_[input].source->reader().namespaces();
  sessions_.push_back({input, &filed, namespace_index(namespaces[filed.session.name_space])});
}

std::uint32_t UnionTrie::namespace_index(const ArchiveNamespace& name_space) {
  const auto next = static_cast<std::uint32_t>(namespaces_.size());
  const std::string key = (name_space.named ? "n" : "d") + name_space.bytes;
  const auto [found, is_new] = namespace_by_key_.try_emplace(key, next);
  if (is_new) namespaces_.push_back(name_space);
  return found->second;
}

void UnionTrie::want_sessions(std::uint32_t input, std::vector<bool>& wanted) const {
  const auto& namespaces = inputs_[input].source->reader().namespaces();
  for (const Session& session : sessions_) {
    const ArchiveNamespace& name_space = namespaces_[session.name_space];
    for (std::uint32_t i = 0; i < namespaces.size(); ++i) {
      if (namespaces[i].named != name_space.named || namespaces[i].bytes != name_space.bytes) {
        continue;
      }
      const Tokens tokens = session.filed->session.tokens;
      for (const std::uint32_t node : inputs_[input].tables->nodes().match(tokens, i).nodes) {
        wanted[node] = true;
      }
    }
  }
}

std::optional<std::uint32_t> UnionTrie::twin_of(const Node& node) const {
  const auto [begin, end] = by_hash_.equal_range(node.path_hash);
  for (auto at = begin; at != end; ++at) {
    const Node& other = nodes_[at->second];
    if (other.parent != node.parent || other.name_space != node.name_space) continue;
    if (filed(other).kind != filed(node).kind) continue;
    const auto left = label(other);
    const auto right = label(node);
    if (std::equal(left.begin(), left.end(), right.begin(), right.end())) return at->second;
  }
  return std::nullopt;
}

void UnionTrie::add_nodes(std::uint32_t input, const std::vector<bool>& wanted) {
  const NodeTable& table = inputs_[input].tables->nodes();
  const auto& namespaces = inputs_[input].source->reader().namespaces();
  std::vector<std::uint32_t> places(table.size(), UINT32_MAX);
  for (std::uint32_t number = 0; number < table.size(); ++number) {
    if (!wanted[number]) continue;
    const NodeTable::Node& from = table.at(number);
    Node node;
    node.input = input;
    node.number = number;
    node.name_space = namespace_index(namespaces[from.name_space]);
    const auto bytes = table.label(number);
    if (from.parent != no_node) {
      node.parent = places[from.parent];
      node.path_hash = chain::extend(nodes_[node.parent].path_hash, bytes);
    } else {
      const std::uint64_t root = chain::root(salt_, namespaces_[node.name_space].bytes);
      const auto* key = reinterpret_cast<const char*>(bytes.data());
      node.path_hash = from.kind == BlockKind::key ? chain::key(root, {key, bytes.size()})
                                                   : chain::extend(root, bytes);
    }
    if (const auto twin = twin_of(node)) {
      places[number] = *twin;
      continue;
    }
    places[number] = static_cast<std::uint32_t>(nodes_.size());
    by_hash_.emplace(node.path_hash, places[number]);
    nodes_.push_back(node);
  }
}

}  // namespace esker::detail
