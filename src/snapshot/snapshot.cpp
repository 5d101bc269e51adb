// Invariants
// 1. Rows are given out only from chunks whose stored bytes and decoded rows checked.
#include <esker/snapshot.hpp>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "snapshot/access.hpp"
#include "snapshot/chunk_reader.hpp"
#include "snapshot/fit.hpp"
#include "snapshot/source.hpp"

namespace esker {

using detail::fail;
using detail::failure_of;
using detail::guarded;

namespace {

using Source = std::shared_ptr<detail::SnapshotSource>;

Result<const detail::SnapshotTables*> tables_of(const Source& source) {
  if (source == nullptr) return fail(Errc::invalid, "this Snapshot was moved from");
  return source->tables();
}

Result<void> check_namespace_index(const detail::SnapshotSource& source, std::uint32_t index) {
  const std::size_t count = source.reader().namespaces().size();
  if (index < count) return {};
  return fail(Errc::invalid, source.info().path + ": namespace " + std::to_string(index) +
                                 " does not exist; there are " + std::to_string(count));
}

/// What a copy was asked for, checked.
struct Wanted {
  std::size_t plane = 0;
  std::uint32_t row_bytes = 0;
  TokenRange range{0, 0};
};

Result<Wanted> check_copy(const detail::SnapshotSource& source, std::uint32_t layer, Plane plane,
                          TokenRange range, std::uint32_t stored) {
  const Geometry& geometry = source.info().geometry;
  const int number = detail::plane_number(geometry, layer, plane);
  if (number < 0) {
    return fail(Errc::invalid, source.info().path + ": layer " + std::to_string(layer) + " " +
                                   std::string(name(plane)) + ": no such rows; the geometry has " +
                                   std::to_string(geometry.layers.size()) + " layers");
  }
  if (range.end == UINT32_MAX) range.end = stored;
  if (range.begin > range.end || range.end > stored) {
    return fail(Errc::invalid, source.info().path + ": tokens " + std::to_string(range.begin) +
                                   "…" + std::to_string(range.end) + ", but rows of " +
                                   std::to_string(stored) + " are here");
  }
  return Wanted{static_cast<std::size_t>(number), geometry.row_bytes(layer, plane), range};
}

/// Copies rows of the matched nodes, front to back.
Result<void> copy_nodes(const detail::SnapshotSource& source, const detail::SnapshotTables& tables,
                        const std::vector<std::uint32_t>& nodes, const Wanted& wanted,
                        std::span<std::byte> out) {
  detail::ChunkReader chunks(source.reader(), tables);
  for (const std::uint32_t node : nodes) {
    const auto& at = tables.nodes().at(node);
    const std::uint32_t begin = std::max(wanted.range.begin, at.first_token);
    const std::uint32_t end = std::min(wanted.range.end, at.end_token());
    if (begin >= end) continue;
    const auto now = out.first(std::size_t{end - begin} * wanted.row_bytes);
    auto done =
        chunks.read(node, wanted.plane, {begin - at.first_token, end - at.first_token}, now);
    if (!done) return done;
    out = out.subspan(now.size());
  }
  return {};
}

}  // namespace

Snapshot::Snapshot(Source source) noexcept : source_(std::move(source)) {}
Snapshot::Snapshot(Snapshot&&) noexcept = default;
Snapshot& Snapshot::operator=(Snapshot&&) noexcept = default;
Snapshot::~Snapshot() = default;

Result<Snapshot> Snapshot::open(const std::string& path) {
  return guarded([&]() -> Result<Snapshot> {
    auto source = detail::SnapshotSource::open(path);
    if (!source) return failure_of(source);
    return Snapshot(std::move(*source));
  });
}

Result<Snapshot> Snapshot::open(int fd, const std::string& label) {
  return guarded([&]() -> Result<Snapshot> {
    auto source = detail::SnapshotSource::open(fd, label);
    if (!source) return failure_of(source);
    return Snapshot(std::move(*source));
  });
}

const SnapshotInfo& Snapshot::info() const noexcept {
  static const SnapshotInfo none;
  return source_ == nullptr ? none : source_->info();
}

const Geometry& Snapshot::geometry() const noexcept { return info().geometry; }
const ModelId& Snapshot::model() const noexcept { return info().model; }
bool Snapshot::seekable() const noexcept { return source_ != nullptr && source_->seekable(); }

Result<SnapshotContents> Snapshot::contents() const {
  return guarded([&]() -> Result<SnapshotContents> {
    auto tables = tables_of(source_);
    if (!tables) return failure_of(tables);
    return detail::describe_contents(source_->reader(), **tables);
  });
}

Result<std::vector<std::int32_t>> Snapshot::token_ids(std::uint64_t path) const {
  return guarded([&]() -> Result<std::vector<std::int32_t>> {
    auto tables = tables_of(source_);
    if (!tables) return failure_of(tables);
    const detail::NodeTable& nodes = (*tables)->nodes();
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      if (nodes.at(i).path_hash != path) continue;
      if (nodes.at(i).kind == detail::BlockKind::tokens) return nodes.tokens_of(i);
      return fail(Errc::invalid, info().path + ": path " + detail::hex(path) +
                                     " is an opaque key, it has no tokens");
    }
    return fail(Errc::missing, info().path + ": there is no path " + detail::hex(path));
  });
}

Result<std::vector<std::int32_t>> Snapshot::session_token_ids(const std::string& name) const {
  return guarded([&]() -> Result<std::vector<std::int32_t>> {
    auto tables = tables_of(source_);
    if (!tables) return failure_of(tables);
    if (const auto* found = (*tables)->session(name)) return found->session.tokens;
    return fail(Errc::missing, info().path + ": there is no session \"" + name + "\"");
  });
}

Result<std::uint32_t> Snapshot::find_namespace(std::string_view name) const {
  return guarded([&]() -> Result<std::uint32_t> {
    if (source_ == nullptr) return fail(Errc::invalid, "this Snapshot was moved from");
    const detail::ArchiveReader& reader = source_->reader();
    const std::vector<std::string> wanted{std::string(name)};
    auto named = detail::name_namespaces(reader.head(), reader.namespaces(), wanted);
    if (!named) return failure_of(named);
    for (std::uint32_t i = 0; i < named->size(); ++i) {
      if ((*named)[i] == name) return i;
    }
    return fail(Errc::missing, info().path + ": nothing here is of that namespace");
  });
}

Result<std::uint32_t> Snapshot::match(Tokens tokens, std::uint32_t name_space) const {
  return guarded([&]() -> Result<std::uint32_t> {
    auto tables = tables_of(source_);
    if (!tables) return failure_of(tables);
    if (auto ok = check_namespace_index(*source_, name_space); !ok) return failure_of(ok);
    return (*tables)->nodes().match(tokens, name_space).tokens;
  });
}

Result<void> Snapshot::copy(Tokens tokens, std::uint32_t name_space, std::uint32_t layer,
                            Plane plane, TokenRange range, std::span<std::byte> out) const {
  return guarded([&]() -> Result<void> {
    auto tables = tables_of(source_);
    if (!tables) return failure_of(tables);
    if (auto ok = check_namespace_index(*source_, name_space); !ok) return ok;
    const auto matched = (*tables)->nodes().match(tokens, name_space);
    auto wanted = check_copy(*source_, layer, plane, range, matched.tokens);
    if (!wanted) return failure_of(wanted);
    const std::uint64_t bytes = std::uint64_t{wanted->range.size()} * wanted->row_bytes;
    if (out.size() != bytes) {
      return fail(Errc::invalid, "copy: the output has " + std::to_string(out.size()) +
                                     " bytes, the range needs " + std::to_string(bytes));
    }
    return copy_nodes(*source_, **tables, matched.nodes, *wanted, out);
  });
}

Result<SnapshotCheck> Snapshot::verify(const Progress& progress) {
  return guarded([&]() -> Result<SnapshotCheck> {
    if (source_ == nullptr) return fail(Errc::invalid, "this Snapshot was moved from");
    auto reader = source_->from_the_start();
    if (!reader) return failure_of(reader);
    return detail::check_archive(**reader, progress);
  });
}

}  // namespace esker
