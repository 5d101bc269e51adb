#pragma once

#include <esker/snapshot.hpp>
#include <esker/store.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "output.hpp"

namespace esker::cli {

/// Where a snapshot goes, and how that is told.
struct SnapshotTarget {
  std::string subject;  ///< of messages: the store, or the file that it comes from
  std::string output;   ///< "-" is standard output
  bool force = false;
  bool may_be_empty = false;  ///< else nothing is written when there is nothing to write
  std::string did;            ///< "exported"
  std::string doing;          ///< "exporting"
};

struct WrittenSnapshot {
  ExportReport report;
  double seconds = 0;
};

/// Writes a snapshot to a descriptor that messages call by its name.
using WriteSnapshot =
    std::function<Result<ExportReport>(int fd, const std::string& label, const Progress& progress)>;

/// Runs `write`. A file has its name when it is whole, and not before; nothing is left otherwise.
[[nodiscard]] Result<WrittenSnapshot> write_snapshot(const SnapshotTarget& target,
                                                     const WriteSnapshot& write, Output& out);

/// True when `write_snapshot` wrote nothing, since there was nothing.
[[nodiscard]] bool is_nothing(const SnapshotTarget& target, const ExportReport& report) noexcept;

/// Says what was written; to standard error, where standard output belongs to the file.
void show_written(const SnapshotTarget& target, const WrittenSnapshot& written, Output& out);
[[nodiscard]] Object written_value(const SnapshotTarget& target, const WrittenSnapshot& written);

/// `write_snapshot`, `show_written` and the JSON document, whose first fields are `fields`.
int write_and_tell(const SnapshotTarget& target, const WriteSnapshot& write, Object fields,
                   Output& out);

/// Reports a failure; a pipe that its reader closed is an ordinary end.
int fail_to_write(const SnapshotTarget& target, const Error& error, Output& out);

/// What was damaged and left out is the answer "no".
[[nodiscard]] Exit exit_of(const ExportReport& report) noexcept;

/// Says so when a store has frozen blocks, which no snapshot of it holds.
void warn_of_cold(std::string_view label, const Store& store, Output& out);

}  // namespace esker::cli
