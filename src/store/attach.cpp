// Invariants (rows 20 to 23 of the transition table)
// 1. INIT is taken before `control` is looked at and kept until the seat is locked and LIVE, so
//    nobody can rebuild a control file that a newcomer has just judged usable.
// 2. A control file that cannot be used is replaced only when no seat is held by anyone.
// 3. Whoever waits for INIT looks again afterwards: the store may have been destroyed or rebuilt.
#include "store/attach.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "region/file_system.hpp"
#include "store/cold_files.hpp"
#include "store/core.hpp"
#include "store/grow.hpp"
#include "store/reap.hpp"
#include "store/rebuild.hpp"
#include "sync/event_ring.hpp"

namespace esker::detail {

namespace {

/// Segment files by name: one more than the highest index.
std::uint32_t segments_on_disk(const Directory& segments, std::uint32_t max_segments) {
  auto names = segments.names();
  std::uint32_t count = 0;
  if (!names) return 0;
  for (std::uint32_t index = max_segments; index > count; --index) {
    if (std::find(names->begin(), names->end(), segment_name(index - 1)) != names->end()) {
      count = index;
    }
  }
  return count;
}

Result<ControlToken> token_of(const Superblock& superblock) {
  auto boot = boot_id();
  if (!boot) return failure_of(boot);
  ControlToken token;
  token.boot_id = *boot;
  token.uuid = superblock.uuid;
  token.layout =
      ControlLayout(superblock.max_blocks(), superblock.segment_blocks, superblock.seats);
  return token;
}

bool someone_attached(const LockFile& lock, const Superblock& superblock) {
  return lock.held_by_others(lock_bytes::seat, superblock.seats);
}

/// "pid 4121 (vllm), pid 4122 (vllm)…": who sits on the seats.
std::string holders(const Control& control) {
  constexpr int most = 8;
  std::string names;
  int named = 0;
  for (std::uint32_t i = 0; i < control.seats_in_use() && named < most; ++i) {
    const SeatRecord record = control.seat(i);
    if (record.phase == static_cast<std::uint32_t>(SeatPhase::empty)) continue;
    const std::string command(record.command.data(),
                              strnlen(record.command.data(), record.command.size()));
    names +=
        (names.empty() ? "" : ", ") + ("pid " + std::to_string(record.pid)) + " (" + command + ")";
    ++named;
  }
  return names;
}

struct OpenedControl {
  Control control;
  bool fresh = false;
};

/// A control file that does not fit is rebuilt; one that cannot be read is an error.
bool replaceable(const Error& error) {
  return error.code == Errc::incompatible || error.code == Errc::corrupt ||
         error.os_error == ENOENT;
}

Result<OpenedControl> open_control(const Directory& directory, const Superblock& superblock,
                                   const LockFile& lock) {
  auto token = token_of(superblock);
  if (!token) return failure_of(token);
  auto control = Control::open(directory, *token, superblock.sharing);
  if (control) return OpenedControl{std::move(*control), false};
  if (!replaceable(control.error())) return failure_of(control);
  if (someone_attached(lock, superblock)) {
    return fail(Errc::busy, control.error().message +
                                "; it cannot be rebuilt while another process has the store open "
                                "(close it, or use the same version of Esker)");
  }
  directory.sweep_temporaries();
  auto built = Control::build(directory, *token, superblock.sharing);
  if (!built) return failure_of(built);
  return OpenedControl{std::move(*built), true};
}

void introduce(SeatRecord& record) {
  record.pid = static_cast<std::uint32_t>(getpid());
  record.opened_unix_ns = unix_ns();
  record.command.fill('\0');
  prctl(PR_GET_NAME, record.command.data());
  struct stat status {};
  record.pid_namespace = stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

/// `seats_high_water` must cover our row before we set a bit in it.
void raise_high_water(const Control& control, std::uint32_t seat) {
  if (control.seats_high_water().load() <= seat) control.seats_high_water().store(seat + 1);
}

Result<void> go_live(Core& core, bool fresh) {
  raise_high_water(core.control, core.seat);
  if (auto ready = core.prepare(); !ready) return ready;
  if (fresh) {
    core.map_segments(segments_on_disk(core.segments_directory, core.superblock.max_segments));
    if (auto built = rebuild(core); !built) return built;
    if (auto named = core.control.publish(core.directory); !named) return named;
    core.event(EventKind::control_rebuilt, 0, 0, "control");
  } else {
    core.follow_growth();
    reap_predecessor(core);
  }
  introduce(core.control.seat(core.seat));
  core.control.phase(core.seat).store(static_cast<std::uint32_t>(SeatPhase::live),
                                      std::memory_order_release);
  core.mark_used();
  return {};
}

Result<std::shared_ptr<Core>> attach_inspecting(Directory directory, Superblock superblock,
                                                const Options& options) {
  auto segments = Directory::open_below(directory, file_names::segments);
  if (!segments) return failure_of(segments);
  auto token = token_of(superblock);
  if (!token) return failure_of(token);
  token->layout = ControlLayout(superblock.max_blocks(), superblock.segment_blocks, 1);
  auto control = Control::build_private(*token);
  if (!control) return failure_of(control);
  auto core = std::make_shared<Core>(Core::Parts{std::move(directory), std::move(*segments),
                                                 std::move(superblock), std::move(*control),
                                                 SeatLock{}, options});
  core->options.verify = Verify::always;
  raise_high_water(core->control, 0);
  if (auto ready = core->prepare(); !ready) return failure_of(ready);
  core->map_segments(segments_on_disk(core->segments_directory, core->superblock.max_segments));
  if (auto built = rebuild(*core); !built) return failure_of(built);
  return core;
}

Result<std::shared_ptr<Core>> attach_seated(Directory directory, const Superblock& superblock,
                                            const Options& options) {
  auto lock = LockFile::open(directory, superblock.sharing, true);
  if (!lock) return failure_of(lock);
  if (!lock->lock(lock_bytes::init, options.open_deadline_ms)) {
    return fail(Errc::busy, directory.path() +
                                "/lock: another process has been opening this store "
                                "for more than " +
                                std::to_string(options.open_deadline_ms) +
                                " ms; if it is stopped, continue or end it");
  }
  auto status = lock->file().status();
  if (!status) return failure_of(status);
  if (status->st_nlink == 0) {
    return fail(Errc::missing, directory.path() + ": the store was destroyed meanwhile");
  }
  if (static_cast<std::uint64_t>(status->st_size) < lock_bytes::file_bytes) {
    if (auto sized = lock->file().allocate(lock_bytes::file_bytes); !sized)
      return failure_of(sized);
  }
  // Read again: until INIT was ours, a resize could change the number of segments.
  auto current = read_superblock(directory);
  if (!current) return failure_of(current);
  return attach_under(*lock, {std::move(directory), std::move(*current)}, options);
}

}  // namespace

Result<Superblock> read_superblock(const Directory& directory) {
  auto file = File::open_at(directory.fd(), directory.path(), file_names::superblock, O_RDONLY);
  if (!file) {
    if (file.error().os_error == ENOENT) {
      return fail(Errc::missing, directory.path() + ": no store here (there is no file \"esker\")");
    }
    return failure_of(file);
  }
  auto status = file->status();
  if (!status) return failure_of(status);
  if (status->st_size != static_cast<off_t>(superblock_bytes)) {
    return fail_field(Errc::corrupt, file->path(), "file size", std::to_string(status->st_size),
                      std::to_string(superblock_bytes),
                      "the file is damaged: restore it from a copy, or remove the store");
  }
  std::vector<std::byte> bytes(superblock_bytes);
  if (auto read = file->read_at(0, bytes); !read) return failure_of(read);
  return decode_superblock(bytes, file->path());
}

Result<std::shared_ptr<Core>> attach_under(const LockFile& lock, FoundStore store,
                                           const Options& options) {
  Directory& directory = store.directory;
  Superblock& superblock = store.superblock;
  auto segments = Directory::create_below(directory, file_names::segments, superblock.sharing);
  if (!segments) return failure_of(segments);
  sweep_unfinished_segments(lock, *segments);
  sweep_unfinished_cold(lock, directory);
  auto opened = open_control(directory, superblock, lock);
  if (!opened) return failure_of(opened);
  const auto first = static_cast<std::uint32_t>(random_u64() % superblock.seats);
  auto seat = SeatLock::claim(directory, superblock.sharing, superblock.seats,
                              std::min(first, opened->control.seats_in_use()));
  if (!seat) {
    if (seat.error().code == Errc::busy) {
      post_event(opened->control, EventKind::attach_refused, 0, 0, 0, "all seats are taken");
      return fail(Errc::busy, seat.error().message + " by " + holders(opened->control) +
                                  "; close one, or create the store with more seats");
    }
    return failure_of(seat);
  }
  auto core = std::make_shared<Core>(Core::Parts{std::move(directory), std::move(*segments),
                                                 std::move(superblock), std::move(opened->control),
                                                 std::move(*seat), options});
  if (auto live = go_live(*core, opened->fresh); !live) {
    if (opened->fresh) core->directory.sweep_temporaries();
    return failure_of(live);
  }
  return core;
}

Result<std::shared_ptr<Core>> attach(const std::string& path, const Options& options) {
  if (options.access > Access::inspect || options.verify > Verify::never) {
    return fail(Errc::invalid,
                path + ": access is " + std::to_string(static_cast<int>(options.access)) +
                    " and verify is " + std::to_string(static_cast<int>(options.verify)) +
                    ", allowed are the named values 0…2 and 0…3");
  }
  auto directory = Directory::open(path);
  if (!directory) return failure_of(directory);
  auto superblock = read_superblock(*directory);
  if (!superblock) return failure_of(superblock);
  if (options.access == Access::inspect) {
    return attach_inspecting(std::move(*directory), std::move(*superblock), options);
  }
  if (superblock->read_only_features != 0 && options.access == Access::write) {
    return fail(Errc::incompatible, path +
                                        ": this store uses a feature that this Esker cannot "
                                        "write; open it with Access::read");
  }
  if (auto ok = directory->check_permissions(superblock->sharing); !ok) return failure_of(ok);
  if (!options.allow_unsafe_file_system) {
    if (auto ok = check_file_system(directory->fd(), path); !ok) return failure_of(ok);
  }
  return attach_seated(std::move(*directory), *superblock, options);
}

}  // namespace esker::detail
