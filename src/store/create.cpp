// Invariants
// 1. The superblock gets its name last: a directory with a file "esker" holds a complete store.
// 2. Creators exclude each other by INIT; the loser finds the winner's store.
#include "store/create.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "format/superblock.hpp"
#include "region/directory.hpp"
#include "region/file_system.hpp"
#include "region/segment.hpp"
#include "store/cold_files.hpp"
#include "store/core.hpp"
#include "store/plan.hpp"
#include "sync/lock.hpp"

namespace esker::detail {

namespace {

constexpr std::string_view cache_tag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This directory holds a cache made by Esker: backup programs may leave it out.\n";

/// A directory that exists may be used when it is empty, but for what another creator has begun.
Result<void> check_empty(const Directory& directory) {
  auto names = directory.names();
  if (!names) return tl::make_unexpected(std::move(names).error());
  const bool begun = std::find(names->begin(), names->end(), file_names::lock) != names->end();
  for (const std::string& name : *names) {
    const bool ours = begun && is_unfinished_part(name);
    if (!ours && name != "lost+found") {
      return fail_field(Errc::invalid, directory.path(), "the directory",
                        "not empty (" + name + ")", "empty or new",
                        "choose another path for the store");
    }
  }
  return {};
}

Result<void> write_tag(const Directory& directory, Sharing sharing) {
  auto tag = directory.create_temporary(sharing);
  if (!tag) return tl::make_unexpected(std::move(tag).error());
  if (auto done = tag->write_at(0, std::as_bytes(std::span(cache_tag))); !done) return done;
  auto named = directory.publish(*tag, file_names::cache_tag, true);
  if (!named) return tl::make_unexpected(std::move(named).error());
  return {};
}

Result<void> write_superblock(const Directory& directory, Superblock superblock) {
  auto file = directory.create_temporary(superblock.sharing);
  if (!file) return tl::make_unexpected(std::move(file).error());
  if (auto done = file->allocate(superblock_bytes); !done) return done;
  SuperblockSlot slot{};
  for (superblock.sequence = 2; superblock.sequence < 4; ++superblock.sequence) {
    encode_superblock(superblock, slot);
    const std::uint64_t offset = (superblock.sequence & 1) * superblock_slot_bytes;
    if (auto done = file->write_at(offset, slot); !done) return done;
  }
  if (auto done = file->sync(); !done) return done;
  auto named = directory.publish(*file, file_names::superblock, false);
  if (!named) return tl::make_unexpected(std::move(named).error());
  return directory.sync();
}

Result<void> write_files(const Directory& directory, const Superblock& superblock) {
  directory.sweep_temporaries();
  if (auto done = directory.remove_file(file_names::control); !done) return done;
  // Sessions that a killed destruction has left would be damage in a store with another uuid.
  if (auto done = remove_sessions(directory); !done) return done;
  if (auto done = remove_cold(directory); !done) return done;
  auto segments = Directory::create_below(directory, file_names::segments, superblock.sharing);
  if (!segments) return tl::make_unexpected(std::move(segments).error());
  segments->sweep_temporaries();
  // What a killed creator left under this name carries another uuid.
  if (auto done = segments->remove_file(segment_name(0)); !done) return done;
  if (auto done = build_segment(*segments, segment_plan(superblock), 0); !done) return done;
  if (auto done = write_tag(directory, superblock.sharing); !done) return done;
  return write_superblock(directory, superblock);
}

/// Nothing is left of a creation that failed, and nothing else is touched.
void undo(const Directory& directory, bool made_directory) {
  directory.sweep_temporaries();
  if (auto segments = Directory::open_below(directory, file_names::segments)) {
    segments->sweep_temporaries();
    static_cast<void>(segments->remove_file(segment_name(0)));
  }
  unlinkat(directory.fd(), file_names::segments, AT_REMOVEDIR);
  static_cast<void>(directory.remove_file(file_names::cache_tag));
  static_cast<void>(directory.remove_file(file_names::lock));
  if (made_directory) rmdir(directory.path().c_str());
}

struct Request {
  const Geometry& geometry;
  const ModelId& model;
  const Options& options;
  bool made_directory;
};

/// A store takes its first segment and its control file at once.
Result<void> check_room(const Directory& directory, const Superblock& plan,
                        const FileSystemSpace& space) {
  const std::uint64_t at_once =
      plan.segment_file_bytes +
      ControlLayout(plan.max_blocks(), plan.segment_blocks, plan.seats).file_bytes;
  if (at_once > space.free_bytes) {
    return fail(Errc::io,
                directory.path() + ": a store of " + size_text(plan.capacity_bytes) +
                    " of this geometry takes " + size_text(at_once) + " at once, but only " +
                    size_text(space.free_bytes) + " are free on this file system; make room or " +
                    "lower the capacity",
                ENOSPC);
  }
  return {};
}

/// False: the creator that we waited for has failed and removed its lock file; begin again.
Result<bool> create_in(const Directory& directory, const Request& request) {
  const Options& options = request.options;
  auto lock = LockFile::open(directory, options.sharing, true);
  if (!lock) return tl::make_unexpected(std::move(lock).error());
  if (!lock->lock(lock_bytes::init, options.open_deadline_ms)) {
    return fail(Errc::busy, directory.path() + "/lock: another process is creating this store");
  }
  auto status = lock->file().status();
  if (!status) return tl::make_unexpected(std::move(status).error());
  if (status->st_nlink == 0) return false;
  if (directory.has(file_names::superblock)) {
    return fail(Errc::invalid, directory.path() +
                                   ": there is a store already; open it, or destroy "
                                   "it first");
  }
  auto space = space_of(directory.fd(), directory.path());
  if (!space) return tl::make_unexpected(std::move(space).error());
  auto superblock = plan_store(request.geometry, request.model, options,
                               {space->free_bytes, on_tmpfs(directory.fd())}, directory.path());
  auto done = [&]() -> Result<void> {
    if (!superblock) return tl::make_unexpected(std::move(superblock).error());
    if (auto fits = check_room(directory, *superblock, *space); !fits) return fits;
    if (auto sized = lock->file().allocate(lock_bytes::file_bytes); !sized) return sized;
    return write_files(directory, *superblock);
  }();
  if (done) return true;
  undo(directory, request.made_directory);
  return tl::make_unexpected(std::move(done).error());
}

}  // namespace

bool is_unfinished_part(const std::string& name) {
  return name == file_names::lock || name == file_names::control || name == file_names::segments ||
         name == file_names::sessions || name == file_names::cold ||
         name == file_names::cache_tag || name == file_names::model_file ||
         name.starts_with(file_names::temporary_prefix);
}

Result<void> create_store(const std::string& path, const Geometry& geometry, const ModelId& model,
                          const Options& options) {
  constexpr int most_rounds = 16;
  if (auto valid = geometry.validate(); !valid) return valid;
  for (int round = 0; round < most_rounds; ++round) {
    const bool made = access(path.c_str(), F_OK) != 0;
    auto directory = Directory::create(path, options.sharing);
    if (!directory) return tl::make_unexpected(std::move(directory).error());
    if (directory->has(file_names::superblock)) {
      return fail(Errc::invalid, path + ": there is a store already; open it, or destroy it first");
    }
    if (auto ok = check_empty(*directory); !ok) return ok;
    if (auto ok = directory->check_permissions(options.sharing); !ok) return ok;
    if (!options.allow_unsafe_file_system) {
      if (auto ok = check_file_system(directory->fd(), path); !ok) return ok;
    }
    auto done = create_in(*directory, {geometry, model, options, made});
    if (!done) return tl::make_unexpected(std::move(done).error());
    if (*done) return {};
  }
  return fail(Errc::busy, path + ": other processes keep creating and removing this store");
}

}  // namespace esker::detail
