// Invariants
// 1. A state file belongs to the session whose file names its suffix: what an earlier session of
//    the same name has left is never offered.
// 2. It is handed out only when its header and its payload check.
#include <fcntl.h>
#include <algorithm>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "base/hash.hpp"
#include "catalog/area.hpp"
#include "catalog/file_names.hpp"
#include "catalog/load.hpp"
#include "catalog/new_file.hpp"
#include "catalog/records.hpp"
#include "catalog/room.hpp"
#include "format/session_frame.hpp"

namespace esker::detail {

namespace {

struct OpenedState {
  File file;
  AttachmentContent content;
};

/// Opens a state file and checks its header.
Result<OpenedState> open_state(const SessionArea& area, const std::string& name,
                               std::string_view label) {
  auto file = open_part(area, name);
  if (!file) return tl::make_unexpected(std::move(file).error());
  auto status = file->status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  const auto size = static_cast<std::uint64_t>(status->st_size);
  AttachmentHeader header;
  if (size < sizeof header) {
    return session_damage(file->path(), "file size", std::to_string(size),
                          "at least " + std::to_string(sizeof header));
  }
  if (auto done = file->read_at(0, std::as_writable_bytes(std::span(&header, 1))); !done) {
    return tl::make_unexpected(std::move(done).error());
  }
  auto content = decode_attachment_header(header, size, {area.place.uuid, file->path()});
  if (!content) return tl::make_unexpected(std::move(content).error());
  if (content->label != label) {
    return session_damage(file->path(), "label", "\"" + content->label + "\"",
                          "\"" + std::string(label) + "\" as the name of the file says");
  }
  if (content->payload_bytes > area.place.share_bytes) {
    return session_damage(
        file->path(), "payload_bytes", std::to_string(content->payload_bytes),
        "at most " + std::to_string(area.place.share_bytes) + ", the share of sessions");
  }
  return OpenedState{std::move(*file), std::move(*content)};
}

AttachmentRecord record_of(AttachmentContent content) {
  return {std::move(content.label), content.position, content.path_hash, content.payload_bytes};
}

Result<std::string> state_name(const SessionArea& area, std::string_view name,
                               std::string_view label) {
  if (auto ok = check_attachment_label(label); !ok) {
    return tl::make_unexpected(std::move(ok).error());
  }
  auto session = load_session(area, name);
  if (!session) return tl::make_unexpected(std::move(session).error());
  return state_file_name(encode_session_name(name), session->content.state_suffix, label);
}

Failure no_state(std::string_view name, std::string_view label) {
  return fail(Errc::missing, "session \"" + std::string(name) + "\" has no attachment \"" +
                                 std::string(label) + "\"");
}

/// Disk bytes that go when the name of this file is given to another.
std::uint64_t replaced_bytes(const SessionArea& area, const std::string& file) {
  struct stat status {};
  if (fstatat(area.directory.fd(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return S_ISREG(status.st_mode) && status.st_nlink == 1 ? disk_bytes_of(status) : 0;
}

}  // namespace

Result<std::vector<SessionFiles::Attachment>> SessionFiles::attachments(
    std::string_view name, const std::vector<std::string>* files) const {
  return guarded([&]() -> Result<std::vector<Attachment>> {
    const SessionArea area{directory_, place_};
    auto session = load_session(area, name);
    if (!session) return tl::make_unexpected(std::move(session).error());
    Result<std::vector<std::string>> own;
    if (files == nullptr) {
      own = file_list();
      if (!own) return tl::make_unexpected(std::move(own).error());
      files = &*own;
    }
    const std::string prefix =
        encode_session_name(name) + "." + hex(session->content.state_suffix) + ".";
    std::vector<Attachment> found;
    for (auto at = std::lower_bound(files->begin(), files->end(), prefix);
         at != files->end() && at->starts_with(prefix); ++at) {
      const std::string& file = *at;
      const SessionFileName part = parse_file_name(file);
      if (part.kind != SessionFileName::Kind::state || !check_attachment_label(part.label)) {
        continue;
      }
      auto state = open_state(area, file, part.label);
      if (state) {
        found.push_back({record_of(std::move(state->content)), {}});
      } else if (state.error().code != Errc::missing) {
        found.push_back({{std::string(part.label), 0, 0, 0}, std::move(state.error().message)});
      }
    }
    return found;
  });
}

Result<void> SessionFiles::attach(std::string_view name, const AttachmentRecord& record,
                                  std::span<const std::byte> bytes) const {
  return guarded([&]() -> Result<void> {
    const SessionArea area{directory_, place_};
    if (auto ok = require_writable(area); !ok) return ok;
    auto file = state_name(area, name, record.label);
    if (!file) return tl::make_unexpected(std::move(file).error());
    const AttachmentHeader header = encode_attachment_header(
        {record.label, record.position, record.path_hash, bytes.size(), xxh3(bytes)}, place_.uuid);
    const auto growth = static_cast<std::int64_t>(disk_bytes_of(sizeof header + bytes.size())) -
                        static_cast<std::int64_t>(replaced_bytes(area, *file));
    const std::string path = directory_.path() + "/" + *file;
    if (auto ok = require_room(area, growth, path); !ok) return ok;
    auto named = write_new_file(area, *file, std::as_bytes(std::span(&header, 1)), bytes, {});
    if (!named) return tl::make_unexpected(std::move(named).error());
    return directory_.sync();
  });
}

Result<SessionFiles::State> SessionFiles::state(std::string_view name,
                                                std::string_view label) const {
  return guarded([&]() -> Result<State> {
    const SessionArea area{directory_, place_};
    auto file = state_name(area, name, label);
    if (!file) return tl::make_unexpected(std::move(file).error());
    auto opened = open_state(area, *file, label);
    if (!opened) {
      if (opened.error().code == Errc::missing) return no_state(name, label);
      return tl::make_unexpected(std::move(opened).error());
    }
    State state;
    state.bytes.resize(static_cast<std::size_t>(opened->content.payload_bytes));
    auto done = opened->file.read_at(sizeof(AttachmentHeader), state.bytes);
    if (!done) return tl::make_unexpected(std::move(done).error());
    if (const std::uint64_t sum = xxh3(state.bytes); sum != opened->content.payload_hash) {
      return session_damage(opened->file.path(), "payload_hash", hex(opened->content.payload_hash),
                            hex(sum));
    }
    state.record = record_of(std::move(opened->content));
    return state;
  });
}

Result<void> SessionFiles::detach(std::string_view name, std::string_view label) const {
  return guarded([&]() -> Result<void> {
    const SessionArea area{directory_, place_};
    if (auto ok = require_writable(area); !ok) return ok;
    auto file = state_name(area, name, label);
    if (!file) return tl::make_unexpected(std::move(file).error());
    if (!directory_.has(*file)) return no_state(name, label);
    if (auto done = remove_anything(area, *file); !done) return done;
    return directory_.sync();
  });
}

}  // namespace esker::detail
