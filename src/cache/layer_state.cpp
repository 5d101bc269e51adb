// Invariants
// 1. `rows_` guards rows and bits: shared to read them, exclusive to write. `length_` is stored
//    below the exclusive lock only and never falls, so whoever loads it may read that many rows.
// 2. `open_` only grows; the memory for all positions is there from the start and never moves.
// 3. A thread never waits for a lock that its own range keeps: writers ask first, readers that are
//    inside already do not stand back for a waiting writer, and the others only for a while.
// 4. In a forked child no lock is touched. The memory is a private copy there and is unmapped.
#include "cache/layer_state.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <esker/geometry.hpp>
#include <thread>
#include <utility>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "cache/held_ranges.hpp"

namespace esker::detail {

namespace {

// A waiting writer keeps each new reader back for so long, not for ever: a thread may hold
// a range while it waits for another thread that wants one.
constexpr std::chrono::milliseconds writers_turn{20};

constexpr std::uint64_t page_bytes = 4096;

std::atomic<std::uint64_t> next_serial{1};

Failure out_of_range(std::string_view field, std::uint32_t found) {
  return fail(Errc::invalid, "LayerCache: " + std::string(field) + " is " + std::to_string(found) +
                                 ", allowed is 1…" + std::to_string(UINT32_MAX));
}

}  // namespace

LayerState::LayerState(LayerShape shape, std::size_t row_bytes) noexcept
    : shape_(std::move(shape)),
      row_bytes_(row_bytes),
      serial_(next_serial.fetch_add(1, std::memory_order_relaxed)) {}

Result<std::shared_ptr<LayerState>> LayerState::make(const LayerShape& shape) {
  if (shape.max_tokens == 0) return out_of_range("max_tokens", 0);
  if (shape.heads == 0) return out_of_range("heads", 0);
  if (shape.head_dim == 0) return out_of_range("head_dim", 0);
  const auto geometry = Geometry::uniform(1, shape.heads, shape.head_dim, shape.dtype);
  if (!geometry) {
    return fail(geometry.error().code, "LayerCache: " + geometry.error().message);
  }
  const std::size_t row_bytes = geometry->row_bytes(0, Plane::key);
  std::shared_ptr<LayerState> state(new LayerState(shape, row_bytes));
  if (auto ok = state->take_memory(); !ok) return tl::make_unexpected(std::move(ok).error());
  return state;
}

Result<void> LayerState::take_memory() {
  auto guard = ZeroMemory::allocate_wiped_on_fork();
  if (!guard) return tl::make_unexpected(std::move(guard).error());
  fork_guard_ = std::move(*guard);
  // At most 2^32 rows of 2^24 bytes: no sum can overflow.
  const std::uint64_t plane_bytes =
      align_up(std::uint64_t{shape_.max_tokens} * row_bytes_, page_bytes);
  const std::uint64_t bits_bytes = div_ceil(std::uint64_t{shape_.max_tokens}, 64) * 8;
  auto memory = ZeroMemory::allocate(2 * plane_bytes + bits_bytes);
  if (!memory) return tl::make_unexpected(std::move(memory).error());
  memory_ = std::move(*memory);
  keys_ = memory_.data();
  values_ = keys_ + plane_bytes;
  written_ = reinterpret_cast<std::uint64_t*>(values_ + plane_bytes);
  return {};
}

std::uint32_t LayerState::open_up_to(std::uint32_t tokens) noexcept {
  std::uint32_t before = open();
  while (before < tokens &&
         !open_.compare_exchange_weak(before, tokens, std::memory_order_acq_rel)) {
  }
  return std::max(before, tokens);
}

bool LayerState::held_by_this_thread() const noexcept { return HeldRanges::has(serial_); }

bool LayerState::hold() noexcept {
  const bool again = held_by_this_thread();
  if (!HeldRanges::add(serial_)) return false;
  // The system's lock lets readers in before writers, which could keep a writer out for ever. So
  // readers stand back while one waits; a thread that is inside already does not.
  if (!again && waiting_writers_.load(std::memory_order_relaxed) > 0) stand_back();
  rows_.lock_shared();
  return true;
}

void LayerState::stand_back() const noexcept {
  const auto end = std::chrono::steady_clock::now() + writers_turn;
  while (waiting_writers_.load(std::memory_order_relaxed) > 0 &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void LayerState::let_go() noexcept {
  if (forked()) return;
  HeldRanges::remove(serial_);
  rows_.unlock_shared();
}

std::unique_lock<std::shared_mutex> LayerState::lock_for_writing() {
  waiting_writers_.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock lock(rows_);
  waiting_writers_.fetch_sub(1, std::memory_order_relaxed);
  return lock;
}

void LayerState::put(const LayerEntry& entry) noexcept {
  const std::size_t at = entry.token * row_bytes_;
  // The rows may be those of this very cache: a caller may have kept a span.
  std::memmove(keys_ + at, entry.keys.data(), row_bytes_);
  std::memmove(values_ + at, entry.values.data(), row_bytes_);
  written_[entry.token / 64] |= std::uint64_t{1} << (entry.token % 64);
}

void LayerState::settle() noexcept {
  std::uint32_t length = length_.load(std::memory_order_relaxed);
  const std::uint32_t end = open();
  while (length < end) {
    const std::uint64_t rest = written_[length / 64] >> (length % 64);
    const auto run = static_cast<std::uint32_t>(std::countr_one(rest));
    length += run;
    if (run == 0 || length % 64 != 0) break;
  }
  length_.store(length, std::memory_order_release);
}

bool LayerState::written(std::uint32_t token) const noexcept {
  return token < shape_.max_tokens && (written_[token / 64] >> (token % 64) & 1) != 0;
}

std::span<const std::byte> LayerState::keys(std::uint32_t begin, std::uint32_t end) const noexcept {
  return {keys_ + begin * row_bytes_, (end - begin) * row_bytes_};
}

std::span<const std::byte> LayerState::values(std::uint32_t begin,
                                              std::uint32_t end) const noexcept {
  return {values_ + begin * row_bytes_, (end - begin) * row_bytes_};
}

}  // namespace esker::detail
