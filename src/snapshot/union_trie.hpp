#pragma once

#include <array>
#include <cstdint>
#include <esker/result.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "archive/nodes.hpp"
#include "snapshot/source.hpp"

namespace esker::detail {

/// A snapshot that others are made of.
struct RewriteInput {
  std::shared_ptr<SnapshotSource> source;
  const SnapshotTables* tables = nullptr;
};

/// The union of several snapshots: namespaces, nodes, and sessions by name. Of what several hold,
/// the first counts.
class UnionTrie {
 public:
  struct Node {
    std::uint32_t parent = UINT32_MAX;  ///< index of this list
    std::uint32_t name_space = 0;       ///< index of `namespaces`
    std::uint32_t input = 0;            ///< whose rows are taken
    std::uint32_t number = 0;           ///< of the node there
    std::uint64_t path_hash = 0;
  };
  struct Session {
    std::uint32_t input = 0;
    const SnapshotTables::Session* filed = nullptr;
    std::uint32_t name_space = 0;
  };

  UnionTrie(std::vector<RewriteInput> inputs, const std::array<std::uint8_t, 16>& salt)
      : inputs_(std::move(inputs)), salt_(salt) {}

  /// Everything, or these sessions and their paths. `Errc::missing` names a session.
  [[nodiscard]] Result<void> choose(const std::vector<std::string>& sessions);

  [[nodiscard]] const std::vector<RewriteInput>& inputs() const noexcept { return inputs_; }
  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const std::vector<Session>& sessions() const noexcept { return sessions_; }
  [[nodiscard]] const std::vector<ArchiveNamespace>& namespaces() const noexcept {
    return namespaces_;
  }
  [[nodiscard]] const NodeTable::Node& filed(const Node& node) const noexcept {
    return inputs_[node.input].tables->nodes().at(node.number);
  }
  [[nodiscard]] std::span<const std::byte> label(const Node& node) const noexcept {
    return inputs_[node.input].tables->nodes().label(node.number);
  }

 private:
  void choose_sessions(const std::vector<std::string>& names);
  void add_session(std::uint32_t input, const SnapshotTables::Session& filed);
  void add_nodes(std::uint32_t input, const std::vector<bool>& wanted);
  std::uint32_t namespace_index(const ArchiveNamespace& name_space);
  [[nodiscard]] std::optional<std::uint32_t> twin_of(const Node& node) const;
  void want_sessions(std::uint32_t input, std::vector<bool>& wanted) const;

  std::vector<RewriteInput> inputs_;
  std::array<std::uint8_t, 16> salt_;
  std::vector<ArchiveNamespace> namespaces_;
  std::vector<Node> nodes_;
  std::vector<Session> sessions_;
  std::unordered_map<std::string, std::uint32_t> session_by_name_;
  std::unordered_map<std::string, std::uint32_t> namespace_by_key_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
};

}  // namespace esker::detail
