// Invariants
// 1. A thread reads and writes its own entries only. They have no destructor: a range that is held
//    by a static object may be let go after the thread's other objects are gone.
// 2. Serial numbers of caches are never used twice: an entry that a range left behind, because
//    another thread let it go, can only ever refuse a write to that cache.
// 3. Without an allocation up to `usual_caches` caches at once; what is beyond lies on the heap
//    while it is held.
#include "cache/held_ranges.hpp"

#include <array>
#include <new>

namespace esker::detail {

namespace {

struct Held {
  std::uint64_t cache = 0;
  std::uint32_t ranges = 0;  ///< 0: this place is free
  Held* next = nullptr;
};

constexpr std::size_t usual_caches = 16;
thread_local std::array<Held, usual_caches> places;
thread_local Held* more = nullptr;

Held* find(std::uint64_t cache) noexcept {
  for (Held& held : places) {
    if (held.ranges > 0 && held.cache == cache) return &held;
  }
  for (Held* held = more; held != nullptr; held = held->next) {
    if (held->cache == cache) return held;
  }
  return nullptr;
}

}  // namespace

bool HeldRanges::add(std::uint64_t cache) noexcept {
  if (Held* known = find(cache)) {
    ++known->ranges;
    return true;
  }
  for (Held& held : places) {
    if (held.ranges > 0) continue;
    held = Held{cache, 1, nullptr};
    return true;
  }
  auto* held = new (std::nothrow) Held{cache, 1, more};
  if (held == nullptr) return false;
  more = held;
  return true;
}

void HeldRanges::remove(std::uint64_t cache) noexcept {
  Held* known = find(cache);
  if (known == nullptr || --known->ranges > 0) return;
  for (Held** link = &more; *link != nullptr; link = &(*link)->next) {
    if (*link != known) continue;
    *link = known->next;
    delete known;
    return;
  }
}

bool HeldRanges::has(std::uint64_t cache) noexcept { return find(cache) != nullptr; }

}  // namespace esker::detail
