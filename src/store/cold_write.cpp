// Invariants
// 1. Rows that go into a file were compared with their checksums just before, while they were
//    pinned: damage is not handed on under a new checksum.
// 2. A block is only reported as frozen when the file that holds it is synced and has its name.
#include "store/cold_write.hpp"

#include <algorithm>
#include <cstring>

#include "archive/span_planner.hpp"
#include "base/error.hpp"
#include "store/cold_file.hpp"
#include "store/payload.hpp"
#include "store/walk.hpp"

namespace esker::detail {

namespace {

/// Blocks of a span that has rows in it, pinned and checked.
class PinnedRows {
 public:
  explicit PinnedRows(Core& core) : core_(core), body_(core.bodies.take()) {
    if (body_ == nullptr) throw std::bad_alloc();
    body_->block_tokens = core.block_tokens();
  }
  PinnedRows(const PinnedRows&) = delete;
  PinnedRows& operator=(const PinnedRows&) = delete;
  ~PinnedRows() {
    unpin_all(core_, *body_);
    core_.bodies.give(body_);
  }

  /// False: the block has gone, or does not check.
  bool add(const DraftNode& draft) {
    const Found found = pin_node(core_, draft.block, draft.generation, draft.id);
    if (!found) return false;
    if (found.header->tokens != draft.node.tokens) {
      core_.pins.unpin(draft.block);
      return false;
    }
    if (!append(core_, *body_, found, draft.node.tokens)) throw std::bad_alloc();
    for (std::size_t plane = 0; plane < core_.segments.layout().planes().size(); ++plane) {
      if (check_plane(core_, *body_, body_->blocks.size() - 1, plane)) continue;
      core_.pins.unpin(body_->blocks.back().block);
      body_->blocks.pop_back();
      return false;
    }
    first_rows_.push_back(rows_);
    rows_ += draft.node.tokens;
    return true;
  }

  /// Rows [first, …) of a plane, counted through the blocks.
  void copy(std::size_t plane, std::uint32_t first, std::span<std::byte> out) const {
    const std::size_t row_bytes = core_.segments.layout().planes()[plane].row_bytes;
    auto at = static_cast<std::size_t>(
        std::upper_bound(first_rows_.begin(), first_rows_.end(), first) - first_rows_.begin() - 1);
    while (!out.empty()) {
      const std::uint32_t end = at + 1 < first_rows_.size() ? first_rows_[at + 1] : rows_;
      const std::size_t now = std::min(out.size(), (end - first) * row_bytes);
      const std::byte* rows = core_.segments.rows(body_->blocks[at].block, plane);
      std::memcpy(out.data(), rows + (first - first_rows_[at]) * row_bytes, now);
      out = out.subspan(now);
      first = end;
      ++at;
    }
  }

  [[nodiscard]] std::uint32_t rows() const noexcept { return rows_; }

 private:
  Core& core_;
  PrefixBody* body_;
  std::vector<std::uint32_t> first_rows_;  ///< per block
  std::uint32_t rows_ = 0;
};

class ColdWriter {
 public:
  ColdWriter(Core& core, const ColdDraft& draft) : core_(core), draft_(draft) {}

  Result<WrittenCold> write(const Directory& cold, ColdRoom& room, const FreezeOptions& options) {
    const SnapshotHead head = cold_head(core_.superblock);
    std::vector<ArchiveNamespace> namespaces;
    for (const std::string& bytes : draft_.namespaces) namespaces.push_back({true, bytes});
    auto sink = ColdSink::create(cold, core_.superblock.sharing, room);
    if (!sink) return failure_of(sink);
    WriterOptions how;
    how.codec.compression = options.compression;
    how.codec.level = options.level;
    how.threads = options.threads;
    auto writer = ArchiveWriter::start(**sink, head, namespaces, how);
    if (!writer) return failure_of(writer);
    numbers_.assign(draft_.nodes.size(), no_node);
    SpanPlanner planner(planned());
    const SpanPlanner::Limits limits{writer->span_rows(), snapshot_span_nodes};
    for (auto span = planner.next(limits); !span.empty(); span = planner.next(limits)) {
      if (auto done = write_span(*writer, span); !done) return failure_of(done);
    }
    if (written_.frozen.empty()) return std::move(written_);
    auto totals = writer->finish();
    if (!totals) return failure_of(totals);
    if (auto named = (*sink)->commit(); !named) return failure_of(named);
    written_.name = (*sink)->name();
    written_.file_bytes = totals->file_bytes;
    return std::move(written_);
  }

 private:
  [[nodiscard]] std::vector<PlannedNode> planned() const {
    std::vector<PlannedNode> nodes;
    nodes.reserve(draft_.nodes.size());
    for (const auto& [node, block, generation, id] : draft_.nodes) {
      nodes.push_back(
          {node.parent, node.has_rows ? node.tokens : 0, node.first_token + node.tokens});
    }
    return nodes;
  }

  Result<void> write_span(ArchiveWriter& writer, const std::vector<std::uint32_t>& members) {
    PinnedRows rows(core_);
    ArchiveSpan span;
    span.first_node = writer.next_node();
    for (const std::uint32_t member : members) {
      const DraftNode& draft = draft_.nodes[member];
      ArchiveNode& node = span.nodes.emplace_back(draft.node);
      if (node.parent != no_node) node.parent = numbers_[node.parent];
      numbers_[member] = span.first_node + static_cast<std::uint32_t>(span.nodes.size()) - 1;
      if (node.has_rows) node.has_rows = rows.add(draft);
      if (!node.has_rows) continue;
      written_.frozen.push_back(member);
      written_.raw_bytes += node.tokens * core_.superblock.geometry.token_bytes();
    }
    span.rows = rows.rows();
    return writer.span(
        span,
        [&](std::size_t plane, std::uint32_t first, std::span<std::byte> out) -> Result<void> {
          rows.copy(plane, first, out);
          return {};
        });
  }

  Core& core_;
  const ColdDraft& draft_;
  std::vector<std::uint32_t> numbers_;  ///< in the file, per draft node
  WrittenCold written_;
};

}  // namespace

Result<WrittenCold> write_cold(Core& core, const Directory& cold, ColdRoom& room,
                               const ColdDraft& draft, const FreezeOptions& options) {
  return ColdWriter(core, draft).write(cold, room, options);
}

}  // namespace esker::detail
