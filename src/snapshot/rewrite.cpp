// Invariants
// 1. Digests of namespaces mean something only together with the salt of their file, so files with
//    different salts are not mixed.
// 2. Every row is decoded and checked before it is coded anew.
#include <esker/snapshot.hpp>
#include <mutex>

#include "archive/span_planner.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"
#include "snapshot/access.hpp"
#include "snapshot/chunk_reader.hpp"
#include "snapshot/output.hpp"
#include "snapshot/union_trie.hpp"

namespace esker {

namespace detail {

namespace {

/// Readers of chunks that no thread uses just now.
class ReaderPool {
 public:
  using Readers = std::vector<ChunkReader>;  // one per input

  explicit ReaderPool(const UnionTrie& trie) : trie_(trie) {}

  /// One that has decoded the chunk of this row already, if there is one.
  std::unique_ptr<Readers> take(const UnionTrie::Node& node, std::size_t plane, std::uint32_t row) {
    {
      const std::lock_guard lock(mutex_);
      for (std::unique_ptr<Readers>& each : free_) {
        if (!(*each)[node.input].holds(node.number, plane, row)) continue;
        std::swap(each, free_.back());
        break;
      }
      if (!free_.empty()) {
        auto taken = std::move(free_.back());
        free_.pop_back();
        return taken;
      }
    }
    auto made = std::make_unique<Readers>();
    for (const RewriteInput& input : trie_.inputs()) {
      made->emplace_back(input.source->reader(), *input.tables);
    }
    return made;
  }
  void give(std::unique_ptr<Readers> readers) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(readers));
  }

 private:
  const UnionTrie& trie_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Readers>> free_;
};

class Rewriter {
 public:
  Rewriter(const UnionTrie& trie, const RewriteOptions& options)
      : trie_(trie), options_(options), pool_(trie), numbers_(trie.nodes().size()) {}

  Result<ExportReport> run(ArchiveWriter& writer) {
    std::vector<PlannedNode> plan;
    std::vector<bool> has_children(trie_.nodes().size(), false);
    for (const UnionTrie::Node& node : trie_.nodes()) {
      plan.push_back({node.parent, trie_.filed(node).tokens, trie_.filed(node).end_token()});
      if (node.parent != UINT32_MAX) has_children[node.parent] = true;
      total_rows_ += trie_.filed(node).tokens;
    }
    report_.paths =
        static_cast<std::uint64_t>(std::count(has_children.begin(), has_children.end(), false));
    SpanPlanner planner(plan);
    const SpanPlanner::Limits limits{writer.span_rows(), snapshot_span_nodes, snapshot_path_tokens};
    for (auto span = planner.next(limits); !span.empty(); span = planner.next(limits)) {
      if (auto done = write_span(writer, span); !done) return failure_of(done);
    }
    if (auto done = write_sessions(writer); !done) return failure_of(done);
    auto totals = writer.finish();
    if (!totals) return failure_of(totals);
    add_totals(*totals, report_);
    return report_;
  }

 private:
  Result<void> write_span(ArchiveWriter& writer, const std::vector<std::uint32_t>& planned) {
    ArchiveSpan span;
    span.first_node = writer.next_node();
    std::vector<std::uint32_t> ends;
    for (const std::uint32_t index : planned) {
      numbers_[index] = span.first_node + static_cast<std::uint32_t>(span.nodes.size());
      span.nodes.push_back(node_of(trie_.nodes()[index]));
      span.rows += span.nodes.back().tokens;
      ends.push_back(span.rows);
    }
    auto done =
        writer.span(span, [&](std::size_t plane, std::uint32_t row, std::span<std::byte> out) {
          return read(planned, ends, {plane, row}, out);
        });
    if (!done) return done;
    done_rows_ += span.rows;
    const std::uint64_t row_bytes = geometry().token_bytes();
    if (options_.progress) options_.progress(done_rows_ * row_bytes, total_rows_ * row_bytes);
    return {};
  }

  [[nodiscard]] const Geometry& geometry() const {
    return trie_.inputs().front().source->info().geometry;
  }

  [[nodiscard]] ArchiveNode node_of(const UnionTrie::Node& node) const {
    const NodeTable::Node& filed = trie_.filed(node);
    const auto label = trie_.label(node);
    ArchiveNode made;
    made.parent = node.parent == UINT32_MAX ? no_node : numbers_[node.parent];
    made.name_space = node.name_space;
    made.first_token = filed.first_token;
    made.tokens = filed.tokens;
    made.path_hash = node.path_hash;
    made.published_unix_ns = filed.published_unix_ns;
    made.used_unix_ns = filed.used_unix_ns;
    made.kind = filed.kind;
    made.label.assign(label.begin(), label.end());
    return made;
  }

  struct RowsAt {
    std::size_t plane = 0;
    std::uint32_t row = 0;
  };

  /// Rows of the span: several threads at once.
  Result<void> read(const std::vector<std::uint32_t>& planned,
                    const std::vector<std::uint32_t>& ends, RowsAt at, std::span<std::byte> out) {
    const std::uint32_t row_bytes = plane_row_bytes(geometry())[at.plane];
    auto number =
        static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), at.row) - ends.begin());
    std::unique_ptr<ReaderPool::Readers> readers;
    Result<void> done;
    while (!out.empty() && done) {
      const UnionTrie::Node& node = trie_.nodes()[planned[number]];
      const std::uint32_t begin = number == 0 ? 0 : ends[number - 1];
      const auto left = static_cast<std::uint32_t>(out.size() / row_bytes);
      const TokenRange rows{at.row - begin, std::min(ends[number] - begin, at.row - begin + left)};
      if (readers == nullptr) readers = pool_.take(node, at.plane, rows.begin);
      const auto now = out.first(std::size_t{rows.size()} * row_bytes);
      done = (*readers)[node.input].read(node.number, at.plane, rows, now);
      out = out.subspan(now.size());
      at.row += rows.size();
      ++number;
    }
    if (readers != nullptr) pool_.give(std::move(readers));
    return done;
  }

  Result<void> write_sessions(ArchiveWriter& writer) {
    for (const UnionTrie::Session& session : trie_.sessions()) {
      const ArchiveReader& reader = trie_.inputs()[session.input].source->reader();
      auto found = reader.session_at(session.filed->offset);
      if (!found) return failure_of(found);
      found->session.name_space = session.name_space;
      if (auto done = writer.session(found->session, found->states); !done) return done;
      ++report_.sessions;
    }
    return {};
  }

  const UnionTrie& trie_;
  const RewriteOptions& options_;
  ReaderPool pool_;
  std::vector<std::uint32_t> numbers_;  ///< of the nodes in the new file
  std::uint64_t total_rows_ = 0;
  std::uint64_t done_rows_ = 0;
  ExportReport report_;
};

Result<void> check_same(const SnapshotInfo& first, const SnapshotInfo& other) {
  if (const auto difference = first.geometry.difference(other.geometry); !difference.empty()) {
    return fail(Errc::incompatible, first.path + " and " + other.path + ": " + difference +
                                        "; only snapshots of one geometry can be joined");
  }
  if (const auto difference = first.model.difference(other.model); !difference.empty()) {
    return fail(Errc::incompatible, first.path + " and " + other.path + ": " + difference +
                                        "; only snapshots of one model id can be joined");
  }
  return {};
}

Result<std::vector<RewriteInput>> inputs_of(std::span<Snapshot> snapshots) {
  if (snapshots.empty()) return fail(Errc::invalid, "there is no snapshot to write anew");
  std::vector<RewriteInput> inputs;
  for (const Snapshot& snapshot : snapshots) {
    auto source = SnapshotAccess::source(snapshot);
    if (!source) return failure_of(source);
    if ((*source)->reader().head().use != SnapshotUse::portable) {
      return fail(Errc::invalid, (*source)->info().path + ": this is a cold file of a store");
    }
    if (!inputs.empty()) {
      auto same = check_same(inputs.front().source->info(), (*source)->info());
      if (!same) return failure_of(same);
    }
    auto tables = (*source)->tables();
    if (!tables) return failure_of(tables);
    inputs.push_back({std::move(*source), *tables});
  }
  return inputs;
}

/// The salt of all those that have digests, which must be one.
Result<std::array<std::uint8_t, 16>> common_salt(const std::vector<RewriteInput>& inputs) {
  const RewriteInput* owner = nullptr;
  for (const RewriteInput& input : inputs) {
    const ArchiveReader& reader = input.source->reader();
    const auto digest = [](const ArchiveNamespace& each) { return !each.named; };
    const auto& namespaces = reader.namespaces();
    if (std::none_of(namespaces.begin(), namespaces.end(), digest)) continue;
    if (owner != nullptr && owner->source->reader().head().salt != reader.head().salt) {
      return fail(Errc::invalid,
                  owner->source->info().path + " and " + input.source->info().path +
                      ": both hold namespaces that are known by digests only, of different salts; "
                      "import both into a store with --namespace NAME, and export that");
    }
    owner = owner == nullptr ? &input : owner;
  }
  return (owner == nullptr ? inputs.front() : *owner).source->reader().head().salt;
}

Result<ExportReport> write_anew(std::span<Snapshot> snapshots, ByteSink& sink,
                                const RewriteOptions& options) {
  auto inputs = inputs_of(snapshots);
  if (!inputs) return failure_of(inputs);
  const SnapshotInfo& first = inputs->front().source->info();
  const OutputChoice choice{options.compression, options.level, options.lossy, options.threads};
  if (auto ok = check_choice(choice, first.geometry); !ok) return failure_of(ok);
  if (options.lossy != Lossy::none && first.lossy != Lossy::none) {
    return fail(Errc::invalid, first.path +
                                   ": its rows are lossy=" + std::string(name(first.lossy)) +
                                   " already; they are not made lossy twice");
  }
  auto salt = common_salt(*inputs);
  if (!salt) return failure_of(salt);
  auto head = new_head(first.geometry, first.model, options.lossy);
  if (!head) return failure_of(head);
  head->salt = *salt;
  UnionTrie trie(std::move(*inputs), *salt);
  if (auto ok = trie.choose(options.sessions); !ok) return failure_of(ok);
  auto writer = ArchiveWriter::start(sink, *head, trie.namespaces(), writer_options(choice));
  if (!writer) return failure_of(writer);
  return Rewriter(trie, options).run(*writer);
}

}  // namespace

}  // namespace detail

Result<ExportReport> rewrite_snapshots(std::span<Snapshot> inputs, const std::string& path,
                                       const RewriteOptions& options) {
  return detail::guarded([&]() -> Result<ExportReport> {
    return detail::write_file(path, options.replace, [&](detail::ByteSink& sink) {
      return detail::write_anew(inputs, sink, options);
    });
  });
}

Result<ExportReport> rewrite_snapshots(std::span<Snapshot> inputs, int fd, const std::string& label,
                                       const RewriteOptions& options) {
  return detail::guarded([&]() -> Result<ExportReport> {
    const auto sink = detail::sink_to(fd, label);
    return detail::write_anew(inputs, *sink, options);
  });
}

}  // namespace esker
