// Invariants
// 1. INIT is held throughout, and no seat but our own is taken: nobody is attached, and nobody can
//    attach. Killed at any point, the store opens, with the old size or with the new one.
// 2. Before a block is overwritten the control file is gone, so that whoever comes next judges by
//    the headers.
// 3. Segments go before the superblock says so, so that none is ever left beyond its count.
// 4. Of the two slots of the superblock one is valid at any moment; both are at the end.
#include "store/resize.hpp"

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <esker/version.hpp>

#include "base/error.hpp"
#include "region/file_system.hpp"
#include "store/attach.hpp"
#include "store/cold_files.hpp"
#include "store/disk_use.hpp"
#include "store/evacuate.hpp"
#include "store/kept.hpp"
#include "store/observe.hpp"
#include "store/plan.hpp"
#include "store/reap.hpp"
#include "store/session_paths.hpp"

namespace esker::detail {

namespace {

constexpr std::uint32_t init_wait_ms = 1000;

/// "pid 4121 (vllm), pid 4122 (vllm)".
std::string holders_of(const std::string& path) {
  Options options;
  options.access = Access::inspect;
  auto core = attach(path, options);
  std::string names;
  if (!core) return "a process";
  for (const Process& process : list_processes(**core)) {
    if (!process.alive) continue;
    names += (names.empty() ? "" : ", ") + ("pid " + std::to_string(process.pid)) + " (" +
             process.command + ")";
  }
  return names.empty() ? "a process" : names;
}

Result<LockFile> lock_alone(const Directory& directory, const Superblock& superblock) {
  auto lock = LockFile::open(directory, superblock.sharing, true);
  if (!lock) return lock;
  const std::string& path = directory.path();
  if (!lock->lock(lock_bytes::init, init_wait_ms)) {
    return fail(Errc::busy, path + ": a process is just opening this store");
  }
  auto status = lock->file().status();
  if (!status) return failure_of(status);
  if (status->st_nlink == 0)
    return fail(Errc::missing, path + ": the store was destroyed meanwhile");
  if (lock->held_by_others(lock_bytes::seat, superblock.seats)) {
    return fail(Errc::busy, path + ": to be resized a store must be closed, but it is open in " +
                                holders_of(path));
  }
  return lock;
}

/// Writes the newer slot, then the other: whichever write is cut short, the other slot stands.
Result<void> write_superblock(const Directory& directory, Superblock superblock) {
  auto file = directory.open_file(file_names::superblock, O_RDWR, superblock.sharing);
  if (!file) return failure_of(file);
  SuperblockSlot slot{};
  for (int i = 0; i < 2; ++i) {
    ++superblock.sequence;
    encode_superblock(superblock, slot);
    const std::uint64_t offset = (superblock.sequence & 1) * superblock_slot_bytes;
    if (auto done = file->write_at(offset, slot); !done) return done;
    if (auto done = file->sync(); !done) return done;
  }
  return {};
}

/// One resizing, while INIT is held.
class Resizing {
 public:
  Resizing(Directory directory, Superblock old, const LockFile& lock, bool dry_run)
      : directory_(std::move(directory)), old_(std::move(old)), lock_(lock), dry_run_(dry_run) {}

  Result<Resized> run(std::uint64_t capacity, std::uint64_t cold) {
    auto plan = plan_resize(old_, capacity, cold, directory_.path());
    if (!plan) return failure_of(plan);
    if (auto ok = check_disk(*plan); !ok) return failure_of(ok);
    if (auto ok = check_sessions(*plan); !ok) return failure_of(ok);
    if (auto ok = check_control(*plan); !ok) return failure_of(ok);
    Resized done;
    done.capacity_bytes = plan->capacity_bytes;
    done.cold_bytes = plan->cold_bytes;
    done.max_segments = plan->max_segments;
    done.old_capacity_bytes = old_.capacity_bytes;
    done.old_cold_bytes = old_.cold_bytes;
    if (plan->max_segments < old_.max_segments) {
      if (auto ok = shrink(*plan, done); !ok) return failure_of(ok);
    }
    if (dry_run_) return done;
    if (auto ok = trim_cold(directory_, plan->cold_bytes); !ok) return failure_of(ok);
    if (auto ok = write_superblock(directory_, *plan); !ok) return failure_of(ok);
    if (plan->max_segments == old_.max_segments) return done;
    // It is of another shape than the next opener will want, and would count against the capacity.
    if (auto ok = directory_.remove_file(file_names::control); !ok) return failure_of(ok);
    return done;
  }

 private:
  Result<void> check_sessions(const Superblock& plan) const {
    auto files =
        SessionFiles::open(directory_, {old_.uuid, old_.sharing, old_.sessions_bytes}, false);
    if (!files) return failure_of(files);
    auto used = files->used_bytes();
    if (!used) return failure_of(used);
    if (*used <= plan.sessions_bytes) return {};
    return too_small(
        plan, "its sessions take " + size_text(*used) + ", and a 64th of the capacity is for them",
        *used * 64);
  }

  /// What no disk can hold would only make a control file that takes for ever to build.
  Result<void> check_disk(const Superblock& plan) const {
    if (plan.capacity_bytes <= old_.capacity_bytes) return {};
    auto space = space_of(directory_.fd(), directory_.path());
    if (!space) return failure_of(space);
    if (plan.capacity_bytes <= space->total_bytes) return {};
    return fail_field(Errc::invalid, directory_.path(), "capacity", size_text(plan.capacity_bytes),
                      "at most " + size_text(space->total_bytes) + ", the size of its file system");
  }

  /// The next opener builds a control file of the new shape, beside the old one.
  Result<void> check_control(const Superblock& plan) const {
    if (plan.max_segments <= old_.max_segments) return {};
    const std::uint64_t needed =
        ControlLayout(plan.max_blocks(), plan.segment_blocks, plan.seats).file_bytes;
    auto space = space_of(directory_.fd(), directory_.path());
    if (!space) return failure_of(space);
    if (needed <= space->free_bytes) return {};
    return fail(Errc::io,
                directory_.path() + ": a store of " + size_text(plan.capacity_bytes) +
                    " has a control file of " + size_text(needed) + ", but only " +
                    size_text(space->free_bytes) + " are free on this file system",
                ENOSPC);
  }

  Failure too_small(const Superblock& plan, const std::string& why, std::uint64_t least) const {
    return fail(Errc::full, directory_.path() + ": capacity " + size_text(plan.capacity_bytes) +
                                " is too small: " + why + "; at least " + size_text(least) + " (" +
                                std::to_string(least) + " bytes) would do");
  }

  /// What cannot be read just now would count as empty, and go.
  Result<void> all_is_known(Core& core) const {
    for (std::uint32_t index = 0; index < core.segments.count(); ++index) {
      if (core.segments.rows(index * old_.segment_blocks, 0) != nullptr) continue;
      return fail(Errc::io, directory_.path() + "/segments/" + segment_name(index) +
                                ": it cannot be used, so what it holds is not known; see "
                                "`esker verify`, or leave the capacity as it is");
    }
    if (mark_kept(core)) return {};
    return fail(Errc::io, directory_.path() +
                              "/sessions: not all of them can be read just now, so what they keep "
                              "is not known; try again");
  }

  Result<void> shrink(const Superblock& plan, Resized& done) {
    Options options;
    options.counts_as_use = false;
    options.allow_unsafe_file_system = true;  // it was opened before, and nobody else is here
    auto directory = Directory::open(directory_.path());
    if (!directory) return failure_of(directory);
    auto core = attach_under(lock_, {std::move(*directory), old_}, options);
    if (!core) return failure_of(core);
    const std::uint32_t segments = (*core)->segments.count();
    if (segments <= plan.max_segments) return {};
    static_cast<void>(reap_dead(**core));
    if (auto whole = all_is_known(**core); !whole) return whole;
    const Evacuation evacuation = plan_evacuation(**core, plan.max_segments);
    if (evacuation.kept_blocks > evacuation.room_blocks) {
      const auto needed =
          static_cast<std::uint32_t>(div_ceil(evacuation.kept_blocks, old_.segment_blocks));
      return too_small(plan,
                       "kept sessions hold " + std::to_string(evacuation.kept_blocks) +
                           " blocks, and there would be room for " +
                           std::to_string(evacuation.room_blocks),
                       least_capacity(old_, needed, plan.cold_bytes));
    }
    done.removed_segments = segments - plan.max_segments;
    done.moved_blocks = evacuation.moves.size();
    done.dropped_blocks = evacuation.dropped_blocks;
    const std::uint64_t before = disk_use(directory_).bytes;
    if (dry_run_) {
      done.disk_bytes = done.removed_segments * old_.segment_file_bytes;
      return {};
    }
    if (auto ok = directory_.remove_file(file_names::control); !ok) return ok;
    if (auto ok = directory_.sync(); !ok) return ok;
    if (auto ok = carry_out(**core, evacuation); !ok) return ok;
    const std::uint64_t after = disk_use(directory_).bytes;
    done.disk_bytes = before > after ? before - after : 0;
    return {};
  }

  Directory directory_;
  Superblock old_;
  const LockFile& lock_;
  bool dry_run_;
};

}  // namespace

Result<Resized> resize_store(const std::string& path, const ResizeOptions& options) {
  auto directory = Directory::open(path);
  if (!directory) return failure_of(directory);
  auto superblock = read_superblock(*directory);
  if (!superblock) return failure_of(superblock);
  if (auto ok = directory->check_permissions(superblock->sharing); !ok) return failure_of(ok);
  auto lock = lock_alone(*directory, *superblock);
  if (!lock) return failure_of(lock);
  superblock = read_superblock(*directory);  // another resizing may have come first
  if (!superblock) return failure_of(superblock);
  if (superblock->read_only_features != 0 || superblock->write_version > format_write_version) {
    return fail(Errc::incompatible,
                path + ": this store was written by a newer Esker, which knows more of it");
  }
  const std::uint64_t capacity = options.capacity_bytes.value_or(superblock->capacity_bytes);
  const std::uint64_t cold = options.cold_bytes.value_or(superblock->cold_bytes);
  return Resizing(std::move(*directory), std::move(*superblock), *lock, options.dry_run)
      .run(capacity, cold);
}

}  // namespace esker::detail
