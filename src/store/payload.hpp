#pragma once

#include <cstdint>
#include <esker/prefix.hpp>
#include <esker/result.hpp>
#include <span>

#include "base/stream_copy.hpp"
#include "store/core.hpp"

namespace esker::detail {

/// True when the payload of this plane of a pinned block has been checked, or need not be.
[[nodiscard]] bool plane_checked(const Core& core, const PrefixBody& body, std::size_t index,
                                 std::size_t plane) noexcept;

/// Compares a plane's rows with its checksum; remembers success, condemns the block on failure.
[[nodiscard]] Result<void> check_plane(Core& core, PrefixBody& body, std::size_t index,
                                       std::size_t plane);

/// Copies rows [begin, end) of a block's plane, verifying all of it in the same pass where needed.
class RowCursor;
[[nodiscard]] Result<void> copy_rows(Core& core, PrefixBody& body, std::size_t index,
                                     std::size_t plane, TokenRange rows, RowCursor& out);

/// The same for who passes rows on: what was checked before, for somebody else or by somebody
/// else, does not count, whatever Options::verify says. Only what this body notes does.
[[nodiscard]] Result<void> copy_rows_checked(Core& core, PrefixBody& body, std::size_t index,
                                             std::size_t plane, TokenRange rows, RowCursor& out);

/// Walks a list of row sinks from front to back.
class RowCursor {
 public:
  /// `rows` in all will be put; many of them go past the caches.
  RowCursor(std::span<const RowSink> sinks, std::uint32_t row_bytes, std::uint32_t rows) noexcept
      : sinks_(sinks),
        row_bytes_(row_bytes),
        streams_(std::size_t{rows} * row_bytes >= stream_copy_bytes) {}
  /// The rows will be read again at once: they stay in the caches, however many they are.
  RowCursor(std::span<const RowSink> sinks, std::uint32_t row_bytes) noexcept
      : sinks_(sinks), row_bytes_(row_bytes), streams_(false) {}
  RowCursor(const RowCursor&) = delete;
  RowCursor& operator=(const RowCursor&) = delete;
  ~RowCursor() {
    if (streams_) end_of_streams();
  }
  [[nodiscard]] std::uint32_t row_bytes() const noexcept { return row_bytes_; }
  /// Takes the next `rows` rows from `source`; what is at `next` will be read after them.
  void put(const std::byte* source, std::uint32_t rows, const std::byte* next = nullptr) noexcept;

 private:
  void put_packed(std::byte* target, const std::byte* source, std::size_t bytes,
                  const std::byte* next) const noexcept;

  std::span<const RowSink> sinks_;
  std::uint32_t row_bytes_;
  bool streams_;
  std::uint32_t used_ = 0;  ///< rows of the front sink
};

}  // namespace esker::detail
