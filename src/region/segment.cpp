#include "region/segment.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "region/file_system.hpp"

namespace esker::detail {

namespace {

/// Leaves others some room: 2 % of the file system, at most 1 GiB.
Result<void> check_space(const Directory& segments, std::uint64_t bytes) {
  auto space = space_of(segments.fd(), segments.path());
  if (!space) return tl::make_unexpected(std::move(space).error());
  const std::uint64_t margin = std::min<std::uint64_t>(space->total_bytes / 50, 1ULL << 30);
  if (space->free_bytes >= bytes + margin) return {};
  return fail(Errc::io,
              segments.path() + ": a segment needs " + size_text(bytes) + " and " +
                  size_text(margin) + " are left to others, but only " +
                  size_text(space->free_bytes) + " are free on this file system; make room",
              ENOSPC);
}

Result<void> fill_segment(const File& file, const SegmentPlan& plan, std::uint32_t index) {
  if (auto done = file.allocate(plan.layout.file_bytes()); !done) return done;
  const auto header = encode_segment_header(plan.layout, plan.identity, index, unix_ns());
  if (auto done = file.write_at(0, header); !done) return done;
  return file.sync();
}

}  // namespace

Result<Segment> open_segment(const Directory& segments, const SegmentPlan& plan,
                             std::uint32_t index, bool writable) {
  auto file = segments.open_file(segment_name(index), writable ? O_RDWR : O_RDONLY, plan.sharing);
  if (!file) return tl::make_unexpected(std::move(file).error());
  auto status = file->status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  if (static_cast<std::uint64_t>(status->st_size) != plan.layout.file_bytes()) {
    return fail_field(Errc::corrupt, file->path(), "file size", std::to_string(status->st_size),
                      std::to_string(plan.layout.file_bytes()),
                      "its blocks are not served; remove the file while nobody has the store open");
  }
  std::vector<std::byte> header(segment_header_bytes(plan.layout.planes().size()));
  if (auto read = file->read_at(0, header); !read) return tl::make_unexpected(read.error());
  if (auto ok = check_segment_header(header, plan.layout, plan.identity, index, file->path());
      !ok) {
    return tl::make_unexpected(std::move(ok).error());
  }
  auto mapping = Mapping::map(*file, plan.layout.file_bytes(), Mapping::Mode::read);
  if (!mapping) return tl::make_unexpected(std::move(mapping).error());
  return Segment{std::move(*file), std::move(*mapping), status->st_dev, status->st_ino};
}

Result<void> build_segment(const Directory& segments, const SegmentPlan& plan,
                           std::uint32_t index) {
  if (auto enough = check_space(segments, plan.layout.file_bytes()); !enough) return enough;
  auto file = segments.create_temporary(plan.sharing);
  if (!file) return tl::make_unexpected(std::move(file).error());
  if (auto filled = fill_segment(*file, plan, index); !filled) {
    const std::string name = file->path().substr(file->path().rfind('/') + 1);
    unlinkat(segments.fd(), name.c_str(), 0);
    return filled;
  }
  auto named = segments.publish(*file, segment_name(index), false);
  if (!named) return tl::make_unexpected(std::move(named).error());
  return segments.sync();
}

}  // namespace esker::detail
