#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <esker/layer_cache.hpp>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "region/mapping.hpp"

namespace esker::detail {

/// What the copies of a LayerCache share: the rows, which of them were written, and the lock.
class LayerState {
 public:
  [[nodiscard]] static Result<std::shared_ptr<LayerState>> make(const LayerShape& shape);

  [[nodiscard]] const LayerShape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t row_bytes() const noexcept { return row_bytes_; }
  [[nodiscard]] std::uint32_t open() const noexcept {
    return open_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint32_t length() const noexcept {
    return length_.load(std::memory_order_acquire);
  }
  /// Opens positions below `tokens`, which is at most `max_tokens`; returns how many are open.
  std::uint32_t open_up_to(std::uint32_t tokens) noexcept;

  /// True in a child of the process that made it: its lock may be held by a thread that is not
  /// there.
  [[nodiscard]] bool forked() const noexcept { return fork_guard_.data()[0] == std::byte{0}; }

  /// The lock of readers, and what the thread remembers of it. False when memory is out.
  [[nodiscard]] bool hold() noexcept;
  void let_go() noexcept;
  [[nodiscard]] bool held_by_this_thread() const noexcept;

  /// The lock of a writer. Not for a thread that holds a range of this cache.
  [[nodiscard]] std::unique_lock<std::shared_mutex> lock_for_writing();

  // Below a lock of the kind that fits.
  void put(const LayerEntry& entry) noexcept;
  /// Shows what `put` wrote to `length`.
  void settle() noexcept;
  [[nodiscard]] bool written(std::uint32_t token) const noexcept;
  [[nodiscard]] std::span<const std::byte> keys(std::uint32_t begin,
                                                std::uint32_t end) const noexcept;
  [[nodiscard]] std::span<const std::byte> values(std::uint32_t begin,
                                                  std::uint32_t end) const noexcept;

 private:
  LayerState(LayerShape shape, std::size_t row_bytes) noexcept;
  [[nodiscard]] Result<void> take_memory();
  void stand_back() const noexcept;

  const LayerShape shape_;
  const std::size_t row_bytes_;
  const std::uint64_t serial_;
  ZeroMemory fork_guard_;
  ZeroMemory memory_;
  std::byte* keys_ = nullptr;
  std::byte* values_ = nullptr;
  std::uint64_t* written_ = nullptr;  ///< a bit per token
  std::atomic<std::uint32_t> open_{0};
  std::atomic<std::uint32_t> length_{0};
  std::atomic<std::uint32_t> waiting_writers_{0};
  std::shared_mutex rows_;
};

}  // namespace esker::detail
