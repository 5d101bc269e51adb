#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/hash.hpp"
#include "format/cache_file.hpp"

namespace esker::detail {

/// A CheckedWord in a mapping. One writer; readers of other processes at any time.
/// `identity` goes into the checks, so a word of another file or boot proves nothing.
class CheckedWordRef {
 public:
  CheckedWordRef(CheckedWord& at, std::uint64_t identity) noexcept : at_(at), identity_(identity) {}

  /// The word without its proof: for those who have proved the page once.
  [[nodiscard]] std::uint64_t load(std::memory_order order) const noexcept {
    return std::atomic_ref<std::uint64_t>(at_.word).load(order);
  }

  /// The word, if a check is its. A reader may meet a writer between two steps: it tries again.
  [[nodiscard]] std::optional<std::uint64_t> proved() const noexcept {
    constexpr int most_attempts = 1'000;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      const std::uint64_t word = load(std::memory_order_acquire);
      if (holds(0, word) || holds(1, word)) return word;
    }
    return std::nullopt;
  }

  /// First the check that the present word does not need, then the word.
  void store(std::uint64_t word) noexcept {
    const std::uint64_t now = load(std::memory_order_relaxed);
    const std::size_t spare = holds(0, now) ? 1 : 0;
    // Not before the last word was stored: its check may be the one that is overwritten now.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::atomic_ref<std::uint64_t>(at_.checks[spare])
        .store(check_of(word), std::memory_order_relaxed);
    std::atomic_ref<std::uint64_t>(at_.word).store(word, std::memory_order_release);
  }

 private:
  [[nodiscard]] std::uint64_t check_of(std::uint64_t word) const noexcept {
    return xxh3_of(word, identity_);
  }
  [[nodiscard]] bool holds(std::size_t which, std::uint64_t word) const noexcept {
    return std::atomic_ref<std::uint64_t>(at_.checks[which]).load(std::memory_order_relaxed) ==
           check_of(word);
  }

  CheckedWord& at_;
  std::uint64_t identity_;
};

}  // namespace esker::detail
