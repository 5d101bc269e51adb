// Invariants
// 1. A descriptor that was given is never closed or moved: of a file a duplicate is read by
//    offsets, and a stream is read where it stands.
// 2. A stream is read once.
#include "snapshot/source.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>

#include "base/error.hpp"

namespace esker::detail {

namespace {

Result<File> duplicate(int fd, const std::string& path) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 64);
  if (copy < 0) return fail_os(path, "duplicating its descriptor", errno);
  return File(copy, path);
}

/// A regular file that stands at its beginning.
bool can_be_searched(int fd) noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && ::lseek(fd, 0, SEEK_CUR) == 0;
}

}  // namespace

SnapshotSource::SnapshotSource(ArchiveReader reader, File file)
    : reader_(std::move(reader)), file_(std::move(file)) {
  const SnapshotHead& head = reader_.head();
  info_.path = reader_.label();
  info_.id = head.id;
  info_.write_version = head.write_version;
  info_.read_version = head.read_version;
  info_.created_unix_ns = head.created_unix_ns;
  info_.file_bytes = reader_.file_bytes();
  info_.geometry = head.geometry;
  info_.model = head.model;
  info_.lossy = head.lossy;
}

Result<std::shared_ptr<SnapshotSource>> SnapshotSource::open_file(File file) {
  auto again = duplicate(file.fd(), file.path());
  if (!again) return failure_of(again);
  auto reader = ArchiveReader::open(std::move(file));
  if (!reader) return failure_of(reader);
  return std::shared_ptr<SnapshotSource>(new SnapshotSource(std::move(*reader), std::move(*again)));
}

Result<std::shared_ptr<SnapshotSource>> SnapshotSource::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0 && errno == ENOENT) {
    return fail(Errc::missing, path + ": there is no such file", ENOENT);
  }
  if (fd < 0) return fail_os(path, "open", errno);
  File file(raise_descriptor(fd), path);
  if (!file.valid()) return fail_os(path, "open", errno);
  if (can_be_searched(file.fd())) return open_file(std::move(file));
  // A named pipe: it is read once, and is ours to close.
  auto reader = ArchiveReader::open_stream(file.fd(), path);
  if (!reader) return failure_of(reader);
  return std::shared_ptr<SnapshotSource>(new SnapshotSource(std::move(*reader), std::move(file)));
}

Result<std::shared_ptr<SnapshotSource>> SnapshotSource::open(int fd, const std::string& label) {
  if (can_be_searched(fd)) {
    auto file = duplicate(fd, label);
    if (!file) return failure_of(file);
    return open_file(std::move(*file));
  }
  auto reader = ArchiveReader::open_stream(fd, label);
  if (!reader) return failure_of(reader);
  return std::shared_ptr<SnapshotSource>(new SnapshotSource(std::move(*reader), File()));
}

Result<ArchiveReader*> SnapshotSource::from_the_start() {
  if (!seekable()) {
    if (std::exchange(used_, true)) {
      return fail(Errc::invalid, info_.path +
                                     ": a stream can be read once, and has been; write it to a "
                                     "file first");
    }
    return &reader_;
  }
  auto file = duplicate(file_.fd(), file_.path());
  if (!file) return failure_of(file);
  auto reader = ArchiveReader::open(std::move(*file));
  if (!reader) return failure_of(reader);
  pass_.emplace(std::move(*reader));
  return &*pass_;
}

Result<const SnapshotTables*> SnapshotSource::tables() {
  if (!seekable()) {
    return fail(Errc::invalid,
                info_.path + ": a stream cannot be searched; write it to a file first");
  }
  if (!tables_) {
    auto tables = SnapshotTables::load(reader_);
    if (!tables) return failure_of(tables);
    tables_.emplace(std::move(*tables));
  }
  return &*tables_;
}

}  // namespace esker::detail
