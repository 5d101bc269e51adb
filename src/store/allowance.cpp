// Invariants
// 1. Without leave nothing grows: settings that cannot be read, or a home that is locked for too
//    long, are no leave. The store then evicts, which harms nobody.
// 2. The growing store is never removed: its seat is held.
#include "store/allowance.hpp"

#include <sys/stat.h>

#include "base/error.hpp"
#include "region/file_system.hpp"
#include "store/budget.hpp"
#include "store/core.hpp"
#include "store/home_file.hpp"

namespace esker::detail {

namespace {

constexpr std::uint32_t home_lock_wait_ms = 100;

Failure refusal(const char* reason) { return fail(Errc::full, reason); }

bool leaves_enough(const Core& core, const KeepFree& keep_free) {
  auto space = space_of(core.segments_directory.fd(), core.segments_directory.path());
  if (!space) return false;
  const std::uint64_t kept = core.options.keep_free_bytes != UINT64_MAX
                                 ? core.options.keep_free_bytes
                                 : keep_free.of(space->total_bytes);
  return space->free_bytes >= core.superblock.segment_file_bytes &&
         space->free_bytes - core.superblock.segment_file_bytes >= kept;
}

uid_t owner_of(const Directory& store) {
  struct stat status {};
  return fstat(store.fd(), &status) == 0 ? status.st_uid : geteuid();
}

}  // namespace

Result<Allowance> Allowance::ask(const Core& core) {
  Allowance allowance;
  // Not by its path: the store may have been moved, or this process may have changed directory.
  auto home = Directory::open_below(core.directory, "..");
  if (!home) return refusal("home");
  auto settings = read_settings(*home, owner_of(core.directory));
  if (!settings) return refusal(home_names::settings);
  if (settings->budget_bytes) {
    auto lock = lock_home(*home, home_lock_wait_ms);
    if (!lock) return refusal("home locked");
    allowance.home_lock_.emplace(std::move(*lock));
    BudgetRequest request;
    request.budget_bytes = *settings->budget_bytes;
    request.wanted_bytes = core.superblock.segment_file_bytes;
    request.on_removed = [&core](const HomeStore& store) {
      core.event(EventKind::budget_removed, 0, 0, store.name);
    };
    auto report = make_room(*home, request);
    if (!report) return refusal("budget");
    if (request.wanted_bytes > request.budget_bytes ||
        report->disk_bytes > request.budget_bytes - request.wanted_bytes) {
      return refusal("budget");
    }
  }
  if (!leaves_enough(core, settings->keep_free)) return refusal("keep-free");
  return allowance;
}

}  // namespace esker::detail
