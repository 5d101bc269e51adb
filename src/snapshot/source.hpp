#pragma once

#include <esker/snapshot.hpp>
#include <memory>
#include <optional>
#include <string>

#include "archive/reader.hpp"
#include "region/file.hpp"
#include "snapshot/tables.hpp"

namespace esker::detail {

/// What a Snapshot owns: its file or stream, and the tables once somebody has asked for them.
class SnapshotSource {
 public:
  [[nodiscard]] static Result<std::shared_ptr<SnapshotSource>> open(const std::string& path);
  [[nodiscard]] static Result<std::shared_ptr<SnapshotSource>> open(int fd,
                                                                    const std::string& label);

  [[nodiscard]] const SnapshotInfo& info() const noexcept { return info_; }
  [[nodiscard]] bool seekable() const noexcept { return reader_.seekable(); }
  [[nodiscard]] const ArchiveReader& reader() const noexcept { return reader_; }
  /// A reader that stands at the beginning: of a file as often as one likes, of a stream once. It
  /// is valid until the next call.
  [[nodiscard]] Result<ArchiveReader*> from_the_start();
  /// Of a file.
  [[nodiscard]] Result<const SnapshotTables*> tables();

 private:
  SnapshotSource(ArchiveReader reader, File file);
  [[nodiscard]] static Result<std::shared_ptr<SnapshotSource>> open_file(File file);

  ArchiveReader reader_;
  File file_;  ///< the file once more, for readers from the start; none for a stream
  SnapshotInfo info_;
  std::optional<ArchiveReader> pass_;
  std::optional<SnapshotTables> tables_;
  bool used_ = false;
};

}  // namespace esker::detail
