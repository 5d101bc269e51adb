#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace esker::detail {

/// A block that this handle pins in one of its lives.
struct PinnedBlock {
  std::uint32_t block = 0;
  std::uint32_t generation = 0;
  std::uint64_t checksum = 0;  ///< of the header that was proved
};

/// What a Prefix owns: the pinned blocks of a path, in order, and which of their planes were
/// checked.
struct PrefixBody {
  std::vector<PinnedBlock> blocks;
  std::vector<std::uint64_t> checked;  ///< one bit per (block, plane); atomic_ref only
  std::uint32_t tokens = 0;
  std::uint32_t block_tokens = 0;
  bool keys = false;

  /// Tokens of block `index` that belong to the prefix.
  [[nodiscard]] std::uint32_t tokens_in(std::size_t index) const noexcept {
    const std::uint64_t begin = index * std::uint64_t{block_tokens};
    const std::uint64_t left = tokens - begin;
    return left < block_tokens ? static_cast<std::uint32_t>(left) : block_tokens;
  }
  void clear() noexcept {
    blocks.clear();
    checked.clear();
    tokens = 0;
    keys = false;
  }
};

/// Recycles bodies, so that a warm lookup allocates nothing. Lock-free: every slot holds a body
/// that nobody uses, or nothing.
class PrefixPool {
 public:
  PrefixPool() noexcept = default;
  ~PrefixPool() {
    for (auto& slot : slots_) delete slot.load(std::memory_order_relaxed);
  }

  /// nullptr when memory is out.
  [[nodiscard]] PrefixBody* take() noexcept {
    for (auto& slot : slots_) {
      if (slot.load(std::memory_order_relaxed) == nullptr) continue;
      if (PrefixBody* body = slot.exchange(nullptr, std::memory_order_acquire)) return body;
    }
    return new (std::nothrow) PrefixBody;
  }
  void give(PrefixBody* body) noexcept {
    body->clear();
    for (auto& slot : slots_) {
      PrefixBody* expected = nullptr;
      if (slot.compare_exchange_strong(expected, body, std::memory_order_release,
                                       std::memory_order_relaxed)) {
        return;
      }
    }
    delete body;
  }

 private:
  std::array<std::atomic<PrefixBody*>, 64> slots_{};
};

}  // namespace esker::detail
