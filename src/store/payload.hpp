#pragma once

#include <cstdint>
#include <esker/prefix.hpp>
#include <esker/result.hpp>
#include <span>

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

/// Walks a list of row sinks from front to back.
class RowCursor {
 public:
  RowCursor(std::span<const RowSink> sinks, std::uint32_t row_bytes) noexcept
      : sinks_(sinks), row_bytes_(row_bytes) {}
  [[nodiscard]] std::uint32_t row_bytes() const noexcept { return row_bytes_; }
  /// Takes the next `rows` rows from `source`.
  void put(const std::byte* source, std::uint32_t rows) noexcept;

 private:
  std::span<const RowSink> sinks_;
  std::uint32_t row_bytes_;
  std::uint32_t used_ = 0;  ///< rows of the front sink
};

}  // namespace esker::detail
