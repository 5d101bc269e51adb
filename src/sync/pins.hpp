#pragma once

#include <atomic>
#include <cstdint>

namespace esker::detail {

/// This handle's pins: a count per block shared by its threads, and the seat's bitmap row that
/// other processes look at. The bytes of a block do not change while its bit is set.
class PinTable {
 public:
  PinTable() noexcept = default;
  PinTable(std::uint32_t* counts, std::uint64_t* row) noexcept : counts_(counts), row_(row) {}

  /// Afterwards the caller re-checks the block's word with a seq_cst load.
  void pin(std::uint32_t block) const noexcept;
  void unpin(std::uint32_t block) const noexcept;
  [[nodiscard]] bool pinned(std::uint32_t block) const noexcept {
    return std::atomic_ref<std::uint32_t>(counts_[block]).load(std::memory_order_relaxed) != 0;
  }

 private:
  std::uint32_t* counts_ = nullptr;
  std::uint64_t* row_ = nullptr;
};

}  // namespace esker::detail
