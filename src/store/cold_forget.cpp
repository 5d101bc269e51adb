// Invariants
// 1. COLD is held from before the store is scanned until the last file is rewritten, so that
//    nothing that is removed can be frozen meanwhile.
// 2. What stays is in a new file that has its name before the old one goes. Where no new file can
//    be written, the old one goes all the same: to forget is what was asked for.
// 3. Rows that cannot be read count as gone; a file that cannot be read at all goes as a whole,
//    since nobody can tell what is in it.
#include "store/cold_forget.hpp"

#include <algorithm>
#include <unordered_map>

#include "archive/writer.hpp"
#include "base/error.hpp"
#include "store/cold_files.hpp"
#include "store/cold_tier.hpp"

namespace esker::detail {

namespace {

/// A cold file without some of its nodes.
class Rewriter {
 public:
  Rewriter(const Core& core, const Directory& cold, const ColdFile& file)
      : core_(core), cold_(cold), file_(file) {}

  /// False: nothing of the file is named.
  bool choose(const std::unordered_set<std::uint64_t>& paths) {
    const auto& nodes = file_.nodes();
    keep_.assign(nodes.size(), true);
    bool all = true;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::uint32_t parent = nodes[i].parent;
      const bool below = parent != no_node && !keep_[parent];
      if (!below && !paths.contains(nodes[i].path_hash)) continue;
      keep_[i] = false;
      all = false;
    }
    if (all) return false;
    // What only spelled the paths that go is not needed any more.
    std::vector<bool> useful(nodes.size());
    for (std::size_t i = nodes.size(); i-- > 0;) {
      if (keep_[i] && nodes[i].has_rows) useful[i] = true;
      keep_[i] = useful[i];
      if (useful[i] && nodes[i].parent != no_node) useful[nodes[i].parent] = true;
      any_ = any_ || useful[i];
    }
    return true;
  }

  /// Something is left to be written.
  [[nodiscard]] bool any() const noexcept { return any_; }

  /// Bytes of the new file.
  Result<std::uint64_t> write(ColdRoom& room) {
    auto reader = file_.reader(cold_, core_.superblock);
    if (!reader) return failure_of(reader);
    auto sink = ColdSink::create(cold_, core_.superblock.sharing, room, file_.name());
    if (!sink) return failure_of(sink);
    std::vector<ArchiveNamespace> namespaces;
    for (const std::string& bytes : file_.namespaces()) namespaces.push_back({true, bytes});
    auto writer = ArchiveWriter::start(**sink, cold_head(core_.superblock), namespaces, {});
    if (!writer) return failure_of(writer);
    numbers_.assign(file_.nodes().size(), no_node);
    for (const SpanPlace& span : file_.spans()) {
      if (auto done = write_span(*reader, span, *writer); !done) return failure_of(done);
    }
    auto totals = writer->finish();
    if (!totals) return failure_of(totals);
    if (auto named = (*sink)->commit(); !named) return failure_of(named);
    // Its blocks were not used just now.
    touch_cold(cold_, (*sink)->name(), used_unix_ns());
    return totals->file_bytes;
  }

 private:
  [[nodiscard]] std::uint64_t used_unix_ns() const {
    auto files = list_cold(cold_);
    if (!files) return 0;
    const auto found =
        std::find_if(files->begin(), files->end(),
                     [this](const ColdFileStatus& status) { return status.name == file_.name(); });
    return found == files->end() ? 0 : found->used_unix_ns;
  }

  /// All rows of a span, plane after plane, and which of them could not be read.
  struct SpanRows {
    std::vector<std::vector<std::byte>> planes;
    std::vector<bool> lost;  ///< per row
  };

  [[nodiscard]] Result<SpanRows> read(const ArchiveReader& reader, const SpanPlace& place,
                                      std::uint32_t rows) {
    SpanRows out;
    out.lost.resize(rows);
    for (const PlaneRegion& region : core_.segments.layout().planes()) {
      out.planes.emplace_back(std::size_t{rows} * region.row_bytes);
    }
    for (const ChunkPlace& chunk : place.chunks) {
      const std::size_t row_bytes = core_.segments.layout().planes()[chunk.plane].row_bytes;
      const auto into = std::span(out.planes[chunk.plane])
                            .subspan(chunk.first_row * row_bytes, chunk.rows * row_bytes);
      auto done = reader.chunk_at(place, chunk, into, memory_);
      if (done) continue;
      if (done.error().code != Errc::corrupt) return failure_of(done);
      const auto first = out.lost.begin() + chunk.first_row;
      std::fill(first, first + chunk.rows, true);
    }
    return out;
  }

  Result<void> write_span(const ArchiveReader& reader, const SpanPlace& place,
                          ArchiveWriter& writer) {
    const std::uint32_t end = place.first_node + place.nodes;
    std::uint32_t rows = 0;
    bool some = false;
    for (std::uint32_t i = place.first_node; i < end; ++i) {
      if (file_.nodes()[i].has_rows) rows += file_.nodes()[i].tokens;
      some = some || keep_[i];
    }
    if (!some) return {};
    auto all = read(reader, place, rows);
    if (!all) return failure_of(all);
    std::vector<std::uint32_t> from;  // per row of the new span, its row in the old one
    ArchiveSpan span;
    span.first_node = writer.next_node();
    for (std::uint32_t i = place.first_node; i < end; ++i) {
      if (keep_[i]) add_node(i, all->lost, span, from);
    }
    span.rows = static_cast<std::uint32_t>(from.size());
    return writer.span(
        span,
        [&](std::size_t plane, std::uint32_t first, std::span<std::byte> out) -> Result<void> {
          const std::size_t row_bytes = core_.segments.layout().planes()[plane].row_bytes;
          for (std::size_t done = 0; done < out.size(); done += row_bytes, ++first) {
            const std::byte* row = all->planes[plane].data() + from[first] * row_bytes;
            std::copy_n(row, row_bytes, out.begin() + static_cast<std::ptrdiff_t>(done));
          }
          return {};
        });
  }

  void add_node(std::uint32_t number, const std::vector<bool>& lost, ArchiveSpan& span,
                std::vector<std::uint32_t>& from) {
    const ColdNode& old = file_.nodes()[number];
    ArchiveNode& node = span.nodes.emplace_back();
    node.parent = old.parent == no_node ? no_node : numbers_[old.parent];
    node.name_space = old.name_space;
    node.first_token = old.first_token;
    node.tokens = old.tokens;
    node.path_hash = old.path_hash;
    node.published_unix_ns = old.published_unix_ns;
    node.used_unix_ns = old.used_unix_ns;
    node.kind = old.kind;
    const auto label = file_.label(number);
    node.label.assign(label.begin(), label.end());
    numbers_[number] = span.first_node + static_cast<std::uint32_t>(span.nodes.size()) - 1;
    const auto first = lost.begin() + old.first_row;
    node.has_rows =
        old.has_rows && std::find(first, first + old.tokens, true) == first + old.tokens;
    for (std::uint32_t row = 0; node.has_rows && row < node.tokens; ++row) {
      from.push_back(old.first_row + row);
    }
  }

  const Core& core_;
  const Directory& cold_;
  const ColdFile& file_;
  std::vector<bool> keep_;
  std::vector<std::uint32_t> numbers_;  ///< in the new file, per node of the old one
  CodecMemory memory_;
  bool any_ = false;
};

/// A rewritten file replaces the old one; for any other reason it just goes.
Result<void> forget_in(Core& core, const Directory& cold, const ColdFile& file,
                       const std::unordered_set<std::uint64_t>& paths, Freed& freed) {
  Rewriter rewriter(core, cold, file);
  if (!rewriter.choose(paths)) return {};
  std::uint64_t left_bytes = 0;
  if (rewriter.any()) {
    auto room = ColdRoom::open(cold, core.superblock.cold_bytes);
    auto written = room ? rewriter.write(*room) : tl::make_unexpected(room.error());
    if (written) left_bytes = *written;
  }
  if (auto gone = cold.remove_file(file.name()); !gone) return gone;
  freed.disk_bytes += file.file_bytes() > left_bytes ? file.file_bytes() - left_bytes : 0;
  return {};
}

}  // namespace

Result<HeldCold> hold_cold(Core& core, bool dry_run) {
  HeldCold held;
  const bool possible = core.superblock.cold_bytes != 0 || core.directory.has(file_names::cold);
  if (possible && !dry_run) {
    auto lock = lock_cold(core.directory, core.superblock.sharing, cold_deadline_ms);
    if (!lock) return failure_of(lock);
    held.lock.emplace(std::move(*lock));
    // Of a freezer that was killed: its temporary may hold the very rows.
    if (auto directory = open_cold(core.directory); directory && *directory) {
      sweep_unfinished_cold(**directory);
    }
  }
  held.view = std::make_shared<const ColdView>();
  if (!possible) return held;
  auto view = core.cold->index.whole_view(core);
  if (!view) return failure_of(view);
  held.view = std::move(*view);
  return held;
}

void add_cold_nodes(const ColdView& view, std::vector<ScannedBlock>& scan) {
  if (view.files.empty()) return;
  std::unordered_map<std::uint64_t, std::uint32_t> entries;
  for (std::uint32_t i = 0; i < scan.size(); ++i) entries.emplace(scan[i].chain_hash, i);
  for (const auto& file : view.files) {
    for (const ColdNode& node : file->nodes()) {
      const auto [entry, added] =
          entries.emplace(node.path_hash, static_cast<std::uint32_t>(scan.size()));
      if (!added) {
        ScannedBlock& known = scan[entry->second];
        if (known.block == cold_only) known.has_rows = known.has_rows || node.has_rows;
        continue;
      }
      ScannedBlock block;
      block.block = cold_only;
      block.chain_hash = node.path_hash;
      block.first_token = node.first_token;
      block.tokens = node.tokens;
      block.published_unix_ns = node.published_unix_ns;
      block.key = node.kind == BlockKind::key;
      block.has_rows = node.has_rows;
      if (node.parent != no_node) {
        block.parent_entry = entries.at(file->nodes()[node.parent].path_hash);
        ++scan[block.parent_entry].children;
      }
      scan.push_back(block);
    }
  }
}

void mark_cold_path(const Core& core, const ColdView& view, const std::vector<ScannedBlock>& scan,
                    const SessionRecord& record, bool exact, std::vector<bool>& marks) {
  if (view.files.empty()) return;
  const auto hashes = cold_hashes_along(core, view, record.tokens, record.name_space, exact);
  const std::unordered_set<std::uint64_t> along(hashes.begin(), hashes.end());
  for (std::size_t i = 0; i < scan.size(); ++i) {
    if (scan[i].block == cold_only && along.contains(scan[i].chain_hash)) marks[i] = true;
  }
}

Result<void> forget_cold(Core& core, const HeldCold& cold,
                         const std::unordered_set<std::uint64_t>& paths, Freed& freed) {
  const auto directory = core.cold->index.directory();
  if (paths.empty() || cold.view->empty() || directory == nullptr) return {};
  for (const auto& file : cold.view->files) {
    if (auto done = forget_in(core, *directory, *file, paths, freed); !done) return done;
  }
  for (const std::string& name : cold.view->damaged) {
    if (auto done = directory->remove_file(name); !done) return done;
  }
  core.cold->index.look_again();
  return directory->sync();
}

}  // namespace esker::detail
