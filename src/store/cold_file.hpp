#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <esker/geometry.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/reader.hpp"
#include "format/superblock.hpp"
#include "region/directory.hpp"

namespace esker::detail {

/// A node of a cold file, without its label.
struct ColdNode {
  std::uint32_t parent = no_node;
  std::uint32_t name_space = 0;
  std::uint32_t first_token = 0;
  std::uint32_t tokens = 0;
  std::uint64_t path_hash = 0;
  std::uint64_t published_unix_ns = 0;
  std::uint64_t used_unix_ns = 0;
  std::uint32_t span = 0;
  std::uint32_t first_row = 0;  ///< within the span
  std::uint64_t label_offset = 0;
  std::uint16_t label_bytes = 0;
  BlockKind kind = BlockKind::tokens;
  bool has_rows = false;
};

/// What a cold file holds, without its rows. Files never change, so neither does this, but for what
/// was found to be damaged.
class ColdFile {
 public:
  /// Reads the trie of a cold file of this store. `Errc::incompatible` when it is of another store.
  [[nodiscard]] static Result<std::shared_ptr<const ColdFile>> load(const Directory& cold,
                                                                    const Superblock& store,
                                                                    const std::string& name);
  /// Opens the file again, to read rows. `Errc::missing` when it has gone.
  [[nodiscard]] Result<ArchiveReader> reader(const Directory& cold, const Superblock& store) const;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return file_bytes_; }
  [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }  ///< nodes with rows
  [[nodiscard]] const std::vector<ColdNode>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const std::vector<SpanPlace>& spans() const noexcept { return spans_; }
  [[nodiscard]] const std::vector<std::string>& namespaces() const noexcept { return namespaces_; }
  [[nodiscard]] std::span<const std::byte> label(std::uint32_t node) const noexcept {
    return std::span(labels_).subspan(nodes_[node].label_offset, nodes_[node].label_bytes);
  }

  /// What a node must be to be the next one of a path.
  struct Step {
    std::uint32_t parent = no_node;  ///< the node before it; no_node: the root of the namespace
    std::string_view name_space;
    std::uint64_t hash = 0;
    std::span<const std::byte> label;
    BlockKind kind = BlockKind::tokens;
  };
  /// That node, or no_node. The label proves it, and the parent that was proved before.
  [[nodiscard]] std::uint32_t find(const Step& step) const noexcept;
  /// The nodes right below `parent`, or below the root of all namespaces.
  [[nodiscard]] std::span<const std::uint32_t> children(std::uint32_t parent) const noexcept;
  /// True when rows of the node can be had here, as far as this handle knows.
  [[nodiscard]] bool serves(std::uint32_t node) const noexcept {
    return nodes_[node].has_rows && !bad_[node].load(std::memory_order_relaxed);
  }
  /// Its rows did not check: this handle serves them never again.
  void condemn(std::uint32_t node) const noexcept {
    bad_[node].store(true, std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] Result<void> add_span(std::uint32_t index, const ArchiveSpan& span,
                                      const Superblock& store, const std::string& path);
  [[nodiscard]] std::string fault(const ArchiveNode& node, const Superblock& store) const;
  void sort();

  std::string name_;
  std::array<std::uint8_t, 16> id_{};
  std::uint64_t file_bytes_ = 0;
  std::uint64_t blocks_ = 0;
  std::vector<std::string> namespaces_;
  std::vector<ColdNode> nodes_;
  std::vector<std::byte> labels_;
  std::vector<SpanPlace> spans_;
  std::vector<std::uint32_t> by_hash_;    ///< node numbers, sorted by hash
  std::vector<std::uint32_t> by_parent_;  ///< node numbers, sorted by parent
  std::unique_ptr<std::atomic<bool>[]> bad_;
};

/// What the head of each cold file of a store says.
[[nodiscard]] SnapshotHead cold_head(const Superblock& store);
/// `Errc::incompatible` when a head is not that of a cold file of this store.
[[nodiscard]] Result<void> check_cold_head(const ArchiveReader& reader, const Superblock& store);

}  // namespace esker::detail
