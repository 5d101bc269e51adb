// Invariants
// 1. A store goes only if nobody has it open, nobody has opened it for 30 days and no session in it
//    is kept, all of it seen while its INIT lock is held: nobody can open it meanwhile.
// 2. What cannot be judged stays: another version, damage, a stranger's store, an unreadable
//    session.
// 3. The oldest goes first, and none goes that need not.
#include "store/budget.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <tuple>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/guarded.hpp"
#include "catalog/session_files.hpp"
#include "store/attach.hpp"
#include "store/create.hpp"
#include "store/disk_use.hpp"
#include "store/home_file.hpp"

namespace esker {

namespace detail {

namespace {

constexpr std::uint64_t unused_ns = 30ULL * 24 * 3600 * 1'000'000'000;
constexpr std::uint32_t home_wait_ms = 5000;

bool is_directory(const Directory& home, const std::string& name) {
  struct stat status {};
  return fstatat(home.fd(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(status.st_mode);
}

bool unused(std::uint64_t last_opened) {
  const std::uint64_t now = unix_ns();
  return last_opened != 0 && now > unused_ns && last_opened < now - unused_ns;
}

/// A kept session protects its store; so does one that cannot be read.
bool holds_kept_session(const Directory& store, const Superblock& superblock) {
  auto files = SessionFiles::open(
      store, {superblock.uuid, superblock.sharing, superblock.sessions_bytes}, false);
  auto names = files ? files->names() : tl::make_unexpected(files.error());
  if (!names) return true;
  return std::any_of(names->begin(), names->end(), [&](const std::string& name) {
    auto kept = files->is_kept(name);
    if (kept && !*kept) return false;
    auto record = files->read(name);
    return !record || !record->expired(unix_ns());
  });
}

bool may_go(const Directory& store) {
  if (!unused(last_opened_unix_ns(store))) return false;
  auto superblock = read_superblock(store);
  if (!superblock || superblock->read_only_features != 0) return false;
  if (!store.check_permissions(superblock->sharing)) return false;
  return !holds_kept_session(store, *superblock);
}

bool remove_one(const Directory& home, const HomeStore& store, bool dry_run) {
  if (!unused(store.last_opened_unix_ns)) return false;
  auto removed = destroy_below(home, store.name, may_go, dry_run);
  return removed && *removed;
}

std::uint64_t sum(const std::vector<HomeStore>& stores) {
  std::uint64_t bytes = 0;
  for (const HomeStore& store : stores) bytes += store.disk_bytes;
  return bytes;
}

/// What the home may hold before the asker adds its own.
std::uint64_t target(const Directory& home, const std::vector<HomeStore>& stores,
                     const BudgetRequest& request) {
  const std::uint64_t fits =
      request.budget_bytes > request.wanted_bytes ? request.budget_bytes - request.wanted_bytes : 0;
  std::uint64_t least = sum(stores);
  if (least <= fits) return fits;
  for (const HomeStore& store : stores) {
    if (remove_one(home, store, true)) least -= store.disk_bytes;
  }
  return least <= fits ? fits : request.budget_bytes;
}

Result<BudgetReport> enforce(const std::string& path, bool dry_run) {
  BudgetReport report;
  auto home = Directory::open(path);
  if (!home && home.error().code == Errc::missing) return report;
  if (!home) return failure_of(home);
  auto settings = read_settings(*home, geteuid());
  if (!settings) return failure_of(settings);
  if (settings->budget_bytes) {
    auto lock = lock_home(*home, home_wait_ms);
    if (!lock) return failure_of(lock);
    BudgetRequest request;
    request.budget_bytes = *settings->budget_bytes;
    request.dry_run = dry_run;
    return make_room(*home, request);
  }
  auto stores = stores_below(*home);
  if (!stores) return failure_of(stores);
  report.disk_bytes = sum(*stores);
  return report;
}

Result<std::vector<std::string>> sweep_below(const std::string& path, bool dry_run) {
  std::vector<std::string> swept;
  auto home = Directory::open(path);
  if (!home && home.error().code == Errc::missing) return swept;
  if (!home) return failure_of(home);
  auto names = home->names();
  if (!names) return failure_of(names);
  std::sort(names->begin(), names->end());
  for (const std::string& name : *names) {
    if (!is_directory(*home, name)) continue;
    auto store = Directory::open_below(*home, name);
    if (!store || !unfinished(*store)) continue;
    auto removed = destroy_below(*home, name, unfinished, dry_run);
    if (removed && *removed) swept.push_back(name);
  }
  return swept;
}

}  // namespace

Result<std::vector<HomeStore>> stores_below(const Directory& home) {
  auto names = home.names();
  if (!names) return failure_of(names);
  std::vector<HomeStore> stores;
  for (const std::string& name : *names) {
    if (!is_directory(home, name)) continue;
    auto store = Directory::open_below(home, name);
    if (!store || !store->has(file_names::superblock)) continue;
    stores.push_back({name, disk_use(*store).bytes, last_opened_unix_ns(*store)});
  }
  std::sort(stores.begin(), stores.end(), [](const HomeStore& a, const HomeStore& b) {
    return std::tie(a.last_opened_unix_ns, a.name) < std::tie(b.last_opened_unix_ns, b.name);
  });
  return stores;
}

Result<BudgetReport> make_room(const Directory& home, const BudgetRequest& request) {
  auto stores = stores_below(home);
  if (!stores) return failure_of(stores);
  BudgetReport report;
  report.budget_bytes = request.budget_bytes;
  report.disk_bytes = sum(*stores);
  const std::uint64_t most = target(home, *stores, request);
  for (const HomeStore& store : *stores) {
    if (report.disk_bytes <= most) break;
    if (!remove_one(home, store, request.dry_run)) continue;
    report.disk_bytes -= store.disk_bytes;
    report.removed.push_back(store);
    if (!request.dry_run) request.on_removed(store);
  }
  return report;
}

}  // namespace detail

Result<std::vector<HomeStore>> stores_of_home(const std::string& home) {
  return detail::guarded([&]() -> Result<std::vector<HomeStore>> {
    auto directory = detail::Directory::open(home);
    if (!directory && directory.error().code == Errc::missing) return std::vector<HomeStore>{};
    if (!directory) return detail::failure_of(directory);
    return detail::stores_below(*directory);
  });
}

Result<BudgetReport> enforce_budget(const std::string& home, bool dry_run) {
  return detail::guarded([&] { return detail::enforce(home, dry_run); });
}

Result<std::vector<std::string>> sweep_home(const std::string& home, bool dry_run) {
  return detail::guarded([&] { return detail::sweep_below(home, dry_run); });
}

}  // namespace esker
