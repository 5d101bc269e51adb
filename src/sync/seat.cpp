// Invariants
// 1. The seat's byte is locked by an open file description that no descriptor refers to any more;
//    the mapping alone keeps it, and it is marked MADV_DONTFORK before any fork can happen.
#include "sync/seat.hpp"

#include "base/error.hpp"
#include "sync/lock_registry.hpp"

namespace esker::detail {

Result<SeatLock> SeatLock::claim(const Directory& store, Sharing sharing, std::uint32_t seats,
                                 std::uint32_t first) {
  auto lock = LockFile::open(store, sharing);
  if (!lock) return tl::make_unexpected(std::move(lock).error());
  SeatLock seat;
  std::uint32_t tried = 0;
  while (tried < seats && !lock->try_lock(lock_bytes::seat + (first + tried) % seats)) ++tried;
  if (tried == seats) {
    return fail(Errc::busy, store.path() + ": all " + std::to_string(seats) + " seats are taken");
  }
  seat.index_ = (first + tried) % seats;
  {
    const lock_registry::Guard guard;
    auto page = Mapping::map(lock->file(), lock_bytes::file_bytes, Mapping::Mode::read);
    if (!page) return tl::make_unexpected(std::move(page).error());
    seat.page_ = std::move(*page);
    lock_registry::close_lock_file(lock->file(), guard);
  }
  auto witness = LockFile::open(store, sharing);
  if (!witness) return tl::make_unexpected(std::move(witness).error());
  if (!witness->held_by_others(lock_bytes::seat + seat.index_, 1)) {
    return fail(Errc::io, store.path() +
                              "/lock: this file system drops a lock when its descriptor is closed "
                              "although it is still mapped; the store cannot be shared on it");
  }
  return seat;
}

}  // namespace esker::detail
