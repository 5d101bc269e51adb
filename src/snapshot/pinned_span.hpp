#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "snapshot/stored_trie.hpp"

namespace esker::detail {

/// The blocks of a span while they are read: pinned, and every payload checked on its way out.
class PinnedSpan {
 public:
  /// `most` blocks will be added.
  PinnedSpan(Core& core, std::size_t most);
  PinnedSpan(const PinnedSpan&) = delete;
  PinnedSpan& operator=(const PinnedSpan&) = delete;
  ~PinnedSpan();

  /// Pins the block and places its rows behind those of the last one. Nullptr: it is gone.
  [[nodiscard]] const BlockHeader* add(const ScannedBlock& scanned);
  /// Once all are added.
  void close();

  /// Rows of the span from `first_row` on, as many as `out` has. From several threads at once.
  [[nodiscard]] Result<void> read(std::size_t plane, std::uint32_t first_row,
                                  std::span<std::byte> out);
  /// Checks what `read` has not checked yet.
  void check_all();

  /// Blocks that could not be read, by their number within the span; sorted.
  struct Failed {
    std::uint32_t number = 0;
    bool damaged = false;  ///< false: it is gone, which only a handle that pins nothing meets
  };
  [[nodiscard]] std::vector<Failed> failed() const;

 private:
  Result<void> read_block(std::size_t number, std::size_t plane, TokenRange rows,
                          std::span<std::byte> out);
  void note_failure(std::size_t number);

  Core& core_;
  PrefixBody body_;
  std::vector<std::uint32_t> ends_;  ///< rows of the span up to the end of each block
  mutable std::mutex mutex_;
  std::vector<Failed> failed_;
};

}  // namespace esker::detail
