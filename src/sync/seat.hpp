#pragma once

#include <cstdint>
#include <esker/result.hpp>

#include "region/directory.hpp"
#include "region/mapping.hpp"
#include "sync/lock.hpp"

namespace esker::detail {

/// The sign of life of one opened handle: a byte lock whose only holder is a page mapped from its
/// descriptor. It lives exactly as long as this address space: it survives closefrom, is not
/// inherited by fork, and the kernel frees it when the process is killed.
class SeatLock {
 public:
  SeatLock() noexcept = default;
  SeatLock(SeatLock&&) noexcept = default;
  SeatLock& operator=(SeatLock&&) noexcept = default;

  /// Takes a free seat at or after `first`, going round once. `Errc::busy` when all are taken.
  /// The caller holds INIT and reaps the seat's predecessor next.
  [[nodiscard]] static Result<SeatLock> claim(const Directory& store, Sharing sharing,
                                              std::uint32_t seats, std::uint32_t first);

  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  /// In a forked child: the page was never mapped there.
  void abandon() noexcept { page_.abandon(); }

 private:
  std::uint32_t index_ = 0;
  Mapping page_;
};

}  // namespace esker::detail
