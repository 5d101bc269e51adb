#include "upkeep.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <esker/session.hpp>
#include <filesystem>

#include "describe.hpp"
#include "model_note.hpp"
#include "units.hpp"

namespace esker::cli {

namespace {

namespace fs = std::filesystem;

Result<Store> open_quietly(const StorePlace& place, bool dry_run) {
  Options options;
  options.access = dry_run ? Access::read : Access::write;
  options.counts_as_use = false;
  return Store::open(place.path, options);
}

/// Others have it open: it is used, however long ago they opened it.
bool used_by_others(const Store& store) {
  const auto self = static_cast<std::uint32_t>(getpid());
  const auto processes = store.processes();
  return std::any_of(processes.begin(), processes.end(), [self](const Process& process) {
    return process.alive && process.pid != self;
  });
}

Result<void> forget_expired(Store& store, bool dry_run, Upkeep& upkeep) {
  const auto sessions = Session::list(store);
  if (!sessions) return tl::make_unexpected(sessions.error());
  for (const SessionInfo& session : *sessions) {
    if (session.expired) upkeep.expired.push_back(session.name);
  }
  if (upkeep.expired.empty()) return {};
  const auto freed = Session::remove(store, upkeep.expired, dry_run);
  if (!freed) return tl::make_unexpected(freed.error());
  return {};
}

Result<void> freeze_old(Store& store, const MaintainArgs& args, Upkeep& upkeep) {
  constexpr std::uint64_t ns_per_s = 1'000'000'000;
  const auto info = store.info();
  if (!info) return tl::make_unexpected(info.error());
  if (info->cold_bytes == 0) return {};
  const std::uint64_t now = now_unix_ns();
  FreezeOptions options;
  options.dry_run = args.dry_run;
  const std::uint64_t age = std::min(args.freeze_after_s, now / ns_per_s) * ns_per_s;
  const auto frozen = store.freeze(now - age, options);
  if (!frozen) return tl::make_unexpected(frozen.error());
  upkeep.frozen_blocks = frozen->blocks;
  return {};
}

Result<void> look_after(Store& store, const MaintainArgs& args, Upkeep& upkeep) {
  upkeep.in_use = used_by_others(store);
  if (upkeep.in_use && !args.dry_run) {
    Options options;
    options.access = Access::read;
    static_cast<void>(Store::open(upkeep.place.path, options));  // counts as a use of it
  }
  if (!args.dry_run) {
    const auto reaped = store.reap();
    if (!reaped) return tl::make_unexpected(reaped.error());
    upkeep.reaped_seats = *reaped;
  }
  if (auto done = forget_expired(store, args.dry_run, upkeep); !done) return done;
  return freeze_old(store, args, upkeep);
}

std::uint64_t free_bytes(const StorePlace& place) {
  std::error_code error;
  const fs::space_info space = fs::space(place.path, error);
  return error ? UINT64_MAX : space.available;
}

Result<void> give_back(Store& store, std::uint64_t wanted, bool evict, bool dry_run,
                       Upkeep& upkeep) {
  if (evict) {
    const std::uint64_t stored = store.stats().store_bytes;
    const auto evicted = store.evict(stored > wanted ? stored - wanted : 0, dry_run);
    if (!evicted) return tl::make_unexpected(evicted.error());
    upkeep.evicted_blocks += evicted->blocks;
    if (dry_run) {
      upkeep.returned_bytes += evicted->reusable_bytes;
      return {};
    }
  }
  const std::uint64_t now_free = free_bytes(upkeep.place);
  const auto trimmed =
      store.trim(now_free > UINT64_MAX - wanted ? UINT64_MAX : now_free + wanted, dry_run);
  if (!trimmed) return tl::make_unexpected(trimmed.error());
  upkeep.returned_bytes += trimmed->disk_bytes;
  return {};
}

std::string comma(const std::string& line) { return line.empty() ? "" : ", "; }

}  // namespace

Upkeep look_after(const StorePlace& place, const MaintainArgs& args) {
  Upkeep upkeep;
  upkeep.place = place;
  upkeep.model_file = noted_model_file(place);
  std::error_code error;
  upkeep.model_gone = !upkeep.model_file.empty() && !fs::exists(upkeep.model_file, error);
  const auto info = inspect_place(place);
  upkeep.last_used_unix_ns = info ? last_used(*info) : 0;
  auto store = open_quietly(place, args.dry_run);
  auto done = store ? look_after(*store, args, upkeep) : tl::make_unexpected(store.error());
  if (!done) upkeep.failure = done.error();
  return upkeep;
}

void give_back(Upkeep& upkeep, std::uint64_t keep_free_bytes, bool evict, bool dry_run,
               std::uint64_t freed_bytes) {
  const std::uint64_t now_free = free_bytes(upkeep.place);
  const std::uint64_t have =
      dry_run && now_free <= UINT64_MAX - freed_bytes ? now_free + freed_bytes : now_free;
  if (upkeep.failure || have >= keep_free_bytes) return;
  auto store = open_quietly(upkeep.place, dry_run);
  auto done = store ? give_back(*store, keep_free_bytes - have, evict, dry_run, upkeep)
                    : tl::make_unexpected(store.error());
  if (!done) upkeep.failure = done.error();
}

std::string upkeep_line(const Upkeep& upkeep, Output& out) {
  std::string line;
  if (upkeep.reaped_seats != 0) {
    line += fmt::format("{} of dead processes", format_items(upkeep.reaped_seats, "seat"));
  }
  if (!upkeep.expired.empty()) {
    line += comma(line) + fmt::format("{} over", format_items(upkeep.expired.size(), "session"));
  }
  if (upkeep.frozen_blocks != 0) {
    line += comma(line) + fmt::format("{} frozen", format_items(upkeep.frozen_blocks, "block"));
  }
  if (upkeep.evicted_blocks != 0) {
    line += comma(line) + fmt::format("{} evicted", format_items(upkeep.evicted_blocks, "block"));
  }
  if (upkeep.returned_bytes != 0) {
    line += comma(line) + fmt::format("{} returned to disk", out.size(upkeep.returned_bytes));
  }
  if (upkeep.model_gone) {
    line += comma(line) + fmt::format("its model {} is gone", upkeep.model_file);
  }
  return fmt::format("{}: {}", upkeep.place.label, line.empty() ? "nothing to do" : line);
}

Value upkeep_value(const Upkeep& upkeep) {
  const auto if_any = [](const std::string& text) { return text.empty() ? Value() : Value(text); };
  return Object{{"store", upkeep.place.label},
                {"error", upkeep.failure ? Value(upkeep.failure->message) : Value()},
                {"in_use", upkeep.in_use},
                {"reaped_seats", upkeep.reaped_seats},
                {"expired_sessions", List(upkeep.expired.begin(), upkeep.expired.end())},
                {"frozen_blocks", upkeep.frozen_blocks},
                {"evicted_blocks", upkeep.evicted_blocks},
                {"returned_bytes", upkeep.returned_bytes},
                {"model_file", if_any(upkeep.model_file)},
                {"model_gone", upkeep.model_gone}};
}

}  // namespace esker::cli
