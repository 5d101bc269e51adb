// Invariants
// 1. Nothing is written: a page that is there already stays as it is.
#include "cache/populate.hpp"

#include <sys/mman.h>
#include <cerrno>

#include "base/bytes.hpp"
#include "base/error.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace esker::detail {

namespace {

constexpr std::uint64_t huge_page_bytes = std::uint64_t{2} << 20;

struct Stretch {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Only those that will be written whole: half used ones would cost memory.
void prefer_huge_pages(std::byte* base, const Stretch& pages) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  const std::uint64_t begin = align_up(address + pages.begin, huge_page_bytes) - address;
  const std::uint64_t end = ((address + pages.end) & ~(huge_page_bytes - 1)) - address;
  if (begin < end && pages.begin < end) {
    static_cast<void>(madvise(base + begin, end - begin, MADV_HUGEPAGE));
  }
}

/// 0, or why not.
int populate_pages(std::byte* base, const Stretch& pages) noexcept {
  int rc = 0;
  do {
    rc = madvise(base + pages.begin, pages.end - pages.begin, MADV_POPULATE_WRITE);
  } while (rc != 0 && (errno == EINTR || errno == EAGAIN));
  if (rc == 0 || errno == EINVAL) return 0;  // a kernel before 5.14: pages come one by one
  // What would have been a SIGBUS.
  return errno == EFAULT ? ENOSPC : errno;
}

}  // namespace

Result<void> populate(std::byte* base, const CacheLayout& layout, TokenRange rows,
                      const std::string& named, bool huge_pages) {
  Stretch pages;
  const auto flush = [&]() -> Result<void> {
    if (pages.begin == pages.end) return {};
    if (huge_pages) prefer_huge_pages(base, pages);
    if (const int reason = populate_pages(base, pages); reason != 0) {
      return fail_os(named, "make room for rows", reason);
    }
    return {};
  };
  for (const CachePlane& plane : layout.planes()) {
    const std::uint64_t begin =
        (plane.offset + std::uint64_t{rows.begin} * plane.row_bytes) & ~(cache_page_bytes - 1);
    const std::uint64_t end =
        align_up(plane.offset + std::uint64_t{rows.end} * plane.row_bytes, cache_page_bytes);
    // Planes that are taken whole are one stretch.
    if (begin != pages.end) {
      if (auto done = flush(); !done) return done;
      pages.begin = begin;
    }
    pages.end = end;
  }
  return flush();
}

}  // namespace esker::detail
