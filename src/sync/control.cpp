// Invariants
// 1. A control file under its final name is complete: fallocated whole, header checksummed.
// 2. A header that differs in any way from what this handle would build is never used.
// 3. Zero means FREE, EMPTY and "no hint" everywhere, so a fresh file is a valid empty one.
#include "sync/control.hpp"

#include <fcntl.h>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"

namespace esker::detail {

namespace {

ControlHeader make_header(const ControlToken& token, std::uint64_t device, std::uint64_t inode,
                          std::uint64_t built_unix_ns) {
  ControlHeader header{};
  const ControlLayout& layout = token.layout;
  header.magic = control_magic;
  header.layout_version = control_layout_version;
  header.slots = layout.seats;
  header.boot_id = token.boot_id;
  header.uuid = token.uuid;
  header.device = device;
  header.inode = inode;
  header.file_bytes = layout.file_bytes;
  header.max_blocks = layout.max_blocks;
  header.segment_blocks = layout.segment_blocks;
  header.buckets = layout.buckets;
  header.row_bytes = layout.row_bytes;
  header.slots_offset = layout.slots_offset;
  header.words_offset = layout.words_offset;
  header.checks_offset = layout.checks_offset;
  header.touches_offset = layout.touches_offset;
  header.rows_offset = layout.rows_offset;
  header.hints_offset = layout.hints_offset;
  header.events_offset = layout.events_offset;
  header.built_unix_ns = built_unix_ns;
  header.checksum = xxh3(std::as_bytes(std::span(&header, 1)).first(control_checksum_bytes));
  return header;
}

bool same_constant_part(const ControlHeader& a, const ControlHeader& b) {
  constexpr std::size_t constant_bytes = offsetof(ControlHeader, segment_count);
  return std::memcmp(&a, &b, constant_bytes) == 0;
}

}  // namespace

Result<Control> Control::open(const Directory& store, const ControlToken& token, Sharing sharing) {
  auto file = store.open_file(file_names::control, O_RDWR, sharing);
  if (!file) return tl::make_unexpected(std::move(file).error());
  auto status = file->status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  if (static_cast<std::uint64_t>(status->st_size) != token.layout.file_bytes) {
    return fail_field(Errc::incompatible, file->path(), "file size",
                      std::to_string(status->st_size), std::to_string(token.layout.file_bytes));
  }
  ControlHeader found;
  if (auto read = file->read_at(0, std::as_writable_bytes(std::span(&found, 1))); !read) {
    return tl::make_unexpected(std::move(read).error());
  }
  if (found.boot_id != token.boot_id) {
    return fail_field(Errc::incompatible, file->path(), "boot id", "that of another boot",
                      "this boot's");
  }
  const ControlHeader wanted =
      make_header(token, status->st_dev, status->st_ino, found.built_unix_ns);
  if (!same_constant_part(found, wanted)) {
    return fail_field(Errc::incompatible, file->path(), "header",
                      "that of another store, copy or version", "this store's");
  }
  auto mapping = Mapping::map(*file, token.layout.file_bytes, Mapping::Mode::read_write);
  if (!mapping) return tl::make_unexpected(std::move(mapping).error());
  Control control;
  control.layout_ = token.layout;
  control.mapping_ = std::move(*mapping);
  control.base_ = control.mapping_.data();
  return control;
}

Result<Control> Control::build(const Directory& store, const ControlToken& token, Sharing sharing) {
  auto file = store.create_temporary(sharing);
  if (!file) return tl::make_unexpected(std::move(file).error());
  const std::string name = file->path().substr(file->path().rfind('/') + 1);
  const auto give_up = [&](Error error) -> Result<Control> {
    static_cast<void>(store.remove_file(name));
    error.message = store.path() + "/" + file_names::control + " cannot be built: " + error.message;
    return tl::make_unexpected(std::move(error));
  };
  if (auto done = file->allocate(token.layout.file_bytes); !done) return give_up(done.error());
  auto status = file->status();
  if (!status) return give_up(status.error());
  const ControlHeader header = make_header(token, status->st_dev, status->st_ino, unix_ns());
  if (auto done = file->write_at(0, std::as_bytes(std::span(&header, 1))); !done) {
    return give_up(done.error());
  }
  auto mapping = Mapping::map(*file, token.layout.file_bytes, Mapping::Mode::read_write);
  if (!mapping) return give_up(mapping.error());
  Control control;
  control.layout_ = token.layout;
  control.mapping_ = std::move(*mapping);
  control.base_ = control.mapping_.data();
  control.file_ = std::move(*file);
  return control;
}

Result<void> Control::publish(const Directory& store) {
  auto named = store.publish(file_, file_names::control, true);
  if (!named) return tl::make_unexpected(std::move(named).error());
  file_.reset();
  return {};
}

Result<Control> Control::build_private(const ControlToken& token) {
  auto memory = ZeroMemory::allocate(token.layout.file_bytes);
  if (!memory) return tl::make_unexpected(std::move(memory).error());
  Control control;
  control.layout_ = token.layout;
  control.memory_ = std::move(*memory);
  control.base_ = control.memory_.data();
  *control.header() = make_header(token, 0, 0, unix_ns());
  return control;
}

}  // namespace esker::detail
