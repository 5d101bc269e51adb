#pragma once

#include <cstdint>
#include <esker/snapshot_info.hpp>
#include <map>
#include <string>
#include <vector>

#include "archive/node_table.hpp"
#include "archive/reader.hpp"

namespace esker::detail {

/// All of a file but its rows and the bytes of its states: where everything is.
class SnapshotTables {
 public:
  struct Session {
    ArchiveSession session;
    std::uint64_t offset = 0;
    std::uint64_t states = 0;
  };

  /// Reads them by the index of a file.
  [[nodiscard]] static Result<SnapshotTables> load(const ArchiveReader& reader);

  [[nodiscard]] const NodeTable& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const ArchiveIndex& index() const noexcept { return index_; }
  [[nodiscard]] const std::vector<Session>& sessions() const noexcept { return sessions_; }
  /// Nullptr when there is none of this name.
  [[nodiscard]] const Session* session(const std::string& name) const noexcept;

  /// Where the rows of a node begin.
  struct RowPlace {
    std::uint32_t span = 0;  ///< index into the spans of the index
    std::uint32_t row = 0;   ///< within the span
  };
  [[nodiscard]] RowPlace place_of(std::uint32_t node) const noexcept;
  /// The chunk that holds this row of a plane.
  [[nodiscard]] const ChunkPlace* chunk(std::uint32_t span, std::size_t plane,
                                        std::uint32_t row) const noexcept;

 private:
  NodeTable nodes_;
  ArchiveIndex index_;
  std::vector<std::uint32_t> first_rows_;  ///< per node, within its span
  std::vector<Session> sessions_;
  std::map<std::string, std::size_t> session_by_name_;
};

/// What the tables tell, as the API gives it out.
[[nodiscard]] SnapshotContents describe_contents(const ArchiveReader& reader,
                                                 const SnapshotTables& tables);

/// The number of a plane within a snapshot or a segment; -1: there are no such rows.
[[nodiscard]] int plane_number(const Geometry& geometry, std::uint32_t layer, Plane plane) noexcept;
[[nodiscard]] std::vector<std::uint32_t> plane_row_bytes(const Geometry& geometry);

}  // namespace esker::detail
