// Invariants
// 1. Blocks are pinned only while their span is read. What is gone by then is left out together
//    with all that hangs below it, so every path of the file is whole.
// 2. A span is written only if all its rows checked; else it is tried again without what did not.
// 3. Of a namespace that may name a tenant only its digest is handed to the writer, and hashes of
//    paths begin with that digest: neither lets anybody guess the name cheaply.
#include <esker/snapshot.hpp>
#include <unordered_map>

#include "archive/namespaces.hpp"
#include "archive/span_planner.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"
#include "index/chain_hash.hpp"
#include "snapshot/access.hpp"
#include "snapshot/output.hpp"
#include "snapshot/pinned_span.hpp"
#include "snapshot/sessions_out.hpp"
#include "snapshot/stored_trie.hpp"
#include "store/session_paths.hpp"

namespace esker {

namespace detail {

namespace {

constexpr std::uint32_t none = UINT32_MAX;

std::vector<PlannedNode> plan_of(const StoredTrie& trie) {
  std::vector<PlannedNode> nodes;
  nodes.reserve(trie.blocks.size());
  for (const ScannedBlock& block : trie.blocks) {
    nodes.push_back({block.parent_entry, block.tokens, block.first_token + block.tokens});
  }
  return nodes;
}

class Exporter {
 public:
  Exporter(Core& core, const ExportOptions& options, StoredTrie trie, ChosenSessions sessions)
      : core_(core),
        options_(options),
        trie_(std::move(trie)),
        sessions_(std::move(sessions)),
        planner_(plan_of(trie_)),
        places_(trie_.blocks.size()) {
    report_.damaged_sessions = sessions_.damaged;
    for (const ScannedBlock& block : trie_.blocks) total_rows_ += block.tokens;
  }

  Result<ExportReport> run(ByteSink& sink, const OutputChoice& choice) {
    auto head = new_head(core_.superblock.geometry, core_.superblock.model, choice.lossy);
    if (!head) return failure_of(head);
    salt_ = head->salt;
    if (auto done = name_spaces(); !done) return failure_of(done);
    auto writer = ArchiveWriter::start(sink, *head, archived_, writer_options(choice));
    if (!writer) return failure_of(writer);
    if (auto done = write_spans(*writer); !done) return failure_of(done);
    if (auto done = write_sessions(*writer); !done) return failure_of(done);
    auto totals = writer->finish();
    if (!totals) return failure_of(totals);
    add_totals(*totals, report_);
    return report_;
  }

 private:
  /// Where a block stands in the file.
  struct Place {
    std::uint64_t path_hash = 0;
    std::uint32_t name_space = 0;
    std::uint32_t number = none;
    bool has_children = false;
  };

  /// All namespaces that the file needs; they stand before everything else.
  Result<void> name_spaces() {
    for (std::uint32_t i = 0; i < trie_.blocks.size(); ++i) {
      const ScannedBlock& block = trie_.blocks[i];
      if (block.parent_entry != none) {
        places_[i].name_space = places_[block.parent_entry].name_space;
        continue;
      }
      const Found found = pin_scanned(core_, block);
      if (!found) {
        report_.gone_blocks += planner_.drop(i);
        continue;
      }
      const std::string name(found.header->name_space.data(), found.header->namespace_bytes);
      core_.pins.unpin(block.block);
      auto index = index_of(name);
      if (!index) return failure_of(index);
      places_[i].name_space = *index;
    }
    for (const SessionRecord& session : sessions_.records) {
      if (auto index = index_of(session.name_space); !index) return failure_of(index);
    }
    return {};
  }

  Result<std::uint32_t> index_of(const std::string& name) {
    const auto next = static_cast<std::uint32_t>(archived_.size());
    const auto [found, is_new] = index_by_name_.try_emplace(name, next);
    if (!is_new) return found->second;
    auto archived = archived_namespace(name, SnapshotUse::portable, salt_);
    if (!archived) return failure_of(archived);
    archived_.push_back(std::move(*archived));
    return next;
  }

  Result<void> write_spans(ArchiveWriter& writer) {
    const SpanPlanner::Limits limits{writer.span_rows(), snapshot_span_nodes, snapshot_path_tokens};
    const std::uint64_t row_bytes = core_.superblock.geometry.token_bytes();
    std::uint64_t done_rows = 0;
    for (;;) {
      const std::vector<std::uint32_t> planned = planner_.next(limits);
      if (planned.empty()) return {};
      if (auto done = write_span(writer, planned); !done) return done;
      for (const std::uint32_t entry : planned) done_rows += trie_.blocks[entry].tokens;
      if (options_.progress) options_.progress(done_rows * row_bytes, total_rows_ * row_bytes);
    }
  }

  /// Each round writes the span, or leaves out at least one more block.
  Result<void> write_span(ArchiveWriter& writer, const std::vector<std::uint32_t>& planned) {
    for (;;) {
      PinnedSpan pinned(core_, planned.size());
      std::vector<std::uint32_t> entries;
      const ArchiveSpan span = pin_span(writer.next_node(), planned, pinned, entries);
      if (span.nodes.empty()) return {};
      auto done = writer.span(span, [&](std::size_t plane, std::uint32_t row, auto out) {
        return pinned.read(plane, row, out);
      });
      if (done) note_written(entries);
      if (done || pinned.failed().empty()) return done;
      pinned.check_all();
      for (const auto& [number, damaged] : pinned.failed()) {
        (damaged ? report_.damaged_blocks : report_.gone_blocks) += planner_.drop(entries[number]);
      }
    }
  }

  ArchiveSpan pin_span(std::uint32_t first_node, const std::vector<std::uint32_t>& planned,
                       PinnedSpan& pinned, std::vector<std::uint32_t>& entries) {
    ArchiveSpan span;
    span.first_node = first_node;
    entries.reserve(planned.size());
    for (const std::uint32_t entry : planned) {
      if (planner_.dropped(entry)) continue;
      const BlockHeader* header = pinned.add(trie_.blocks[entry]);
      if (header == nullptr) {
        report_.gone_blocks += planner_.drop(entry);
        continue;
      }
      places_[entry].number = first_node + static_cast<std::uint32_t>(span.nodes.size());
      span.nodes.push_back(node_of(entry, *header));
      span.rows += trie_.blocks[entry].tokens;
      entries.push_back(entry);
    }
    pinned.close();
    return span;
  }

  ArchiveNode node_of(std::uint32_t entry, const BlockHeader& header) {
    const ScannedBlock& block = trie_.blocks[entry];
    Place& place = places_[entry];
    const auto label = core_.prover.label(header);
    const auto touch =
        TouchWord::unpack(core_.control.touch(block.block).load(std::memory_order_relaxed));
    ArchiveNode node;
    node.name_space = place.name_space;
    node.first_token = block.first_token;
    node.tokens = block.tokens;
    node.published_unix_ns = block.published_unix_ns;
    node.used_unix_ns = unix_of_stamp(touch.stamp);
    node.kind = block.key ? BlockKind::key : BlockKind::tokens;
    node.label.assign(label.begin(), label.end());
    if (block.parent_entry != none) {
      node.parent = places_[block.parent_entry].number;
      place.path_hash = chain::extend(places_[block.parent_entry].path_hash, label);
    } else {
      const std::uint64_t root = chain::root(salt_, archived_[place.name_space].bytes);
      const auto* key = reinterpret_cast<const char*>(label.data());
      place.path_hash =
          block.key ? chain::key(root, {key, label.size()}) : chain::extend(root, label);
    }
    node.path_hash = place.path_hash;
    return node;
  }

  void note_written(const std::vector<std::uint32_t>& entries) {
    for (const std::uint32_t entry : entries) {
      ++report_.paths;
      const std::uint32_t parent = trie_.blocks[entry].parent_entry;
      if (parent == none || places_[parent].has_children) continue;
      // The path of the parent goes on, so its end is no path of its own.
      places_[parent].has_children = true;
      --report_.paths;
    }
  }

  Result<void> write_sessions(ArchiveWriter& writer) {
    for (const SessionRecord& record : sessions_.records) {
      bool damaged = false;
      auto states = states_of(core_, record, damaged);
      if (!states && !lasting(states.error())) return failure_of(states);
      if (!states) {
        report_.damaged_sessions += states.error().code == Errc::missing ? 0 : 1;
        continue;
      }
      ArchiveSession session = archived_session(record);
      session.name_space = index_by_name_.at(record.name_space);
      if (auto done = writer.session(session, *states); !done) return done;
      ++report_.sessions;
      report_.damaged_sessions += damaged ? 1 : 0;
    }
    return {};
  }

  Core& core_;
  const ExportOptions& options_;
  StoredTrie trie_;
  ChosenSessions sessions_;
  SpanPlanner planner_;
  std::vector<Place> places_;
  std::array<std::uint8_t, 16> salt_{};
  std::vector<ArchiveNamespace> archived_;
  std::unordered_map<std::string, std::uint32_t> index_by_name_;
  std::uint64_t total_rows_ = 0;
  ExportReport report_;
};

Result<ExportReport> write_export(Core& core, ByteSink& sink, const ExportOptions& options) {
  const OutputChoice choice{options.compression, options.level, options.lossy, options.threads};
  if (auto ok = check_choice(choice, core.superblock.geometry); !ok) return failure_of(ok);
  // Sessions first: what they name is then among the blocks that the scan sees.
  auto sessions = choose_sessions(core, options);
  if (!sessions) return failure_of(sessions);
  auto trie = choose_blocks(core, options, sessions->records);
  if (!trie) return failure_of(trie);
  return Exporter(core, options, std::move(*trie), std::move(*sessions)).run(sink, choice);
}

}  // namespace

}  // namespace detail

using detail::failure_of;

Result<ExportReport> export_snapshot(const Store& store, const std::string& path,
                                     const ExportOptions& options) {
  return detail::guarded([&]() -> Result<ExportReport> {
    auto core = SnapshotAccess::core(store, false);
    if (!core) return failure_of(core);
    return detail::write_file(path, options.replace, [&](detail::ByteSink& sink) {
      return detail::write_export(**core, sink, options);
    });
  });
}

Result<ExportReport> export_snapshot(const Store& store, int fd, const std::string& label,
                                     const ExportOptions& options) {
  return detail::guarded([&]() -> Result<ExportReport> {
    auto core = SnapshotAccess::core(store, false);
    if (!core) return failure_of(core);
    const auto sink = detail::sink_to(fd, label);
    return detail::write_export(**core, *sink, options);
  });
}

}  // namespace esker
