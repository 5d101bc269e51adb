#include "support/allocations.hpp"

#include <malloc.h>
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local std::uint64_t count = 0;
std::atomic<std::uint64_t> held{0};
std::atomic<std::uint64_t> most_held{0};

void* noted(void* memory) noexcept {
  if (memory == nullptr) return nullptr;
  const std::uint64_t now = held += malloc_usable_size(memory);
  std::uint64_t most = most_held.load();
  while (now > most && !most_held.compare_exchange_weak(most, now)) {
  }
  return memory;
}

void give_back(void* memory) noexcept {
  if (memory != nullptr) held -= malloc_usable_size(memory);
  std::free(memory);
}

void* counted(std::size_t bytes, std::size_t alignment) noexcept {
  ++count;
  if (alignment <= alignof(std::max_align_t)) return noted(std::malloc(bytes == 0 ? 1 : bytes));
  return noted(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
}

void* counted_or_throw(std::size_t bytes, std::size_t alignment = 1) {
  void* memory = counted(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace esker::test {
std::uint64_t allocations() noexcept { return count; }

PeakOfMemory::PeakOfMemory() noexcept : before_(held) { most_held = before_; }

std::uint64_t PeakOfMemory::bytes() const noexcept {
  return std::max(most_held.load(), before_) - before_;
}
}  // namespace esker::test

void* operator new(std::size_t bytes) { return counted_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return counted_or_throw(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes, 1); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes, 1);
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { give_back(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { give_back(memory); }
