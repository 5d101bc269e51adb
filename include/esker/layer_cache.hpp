#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>

namespace esker {

namespace detail {
class LayerState;
}  // namespace detail

/// The shape of one layer's cache. A row of keys, and one of values, is `heads` × `head_dim`
/// elements.
/// Threads:  a plain value.
/// Lifetime: fixed for the life of a cache.
/// Errors:   `LayerCache::make` refuses zeros and unknown dtypes.
/// Cost:     none.
struct LayerShape {
  std::uint32_t max_tokens = 8192;
  std::uint32_t heads = 4;
  std::uint32_t head_dim = 64;
  std::string dtype = "f32";  ///< one of those that Geometry::uniform knows
};

/// The rows of one token, for a batch.
struct LayerEntry {
  std::uint32_t token = 0;
  std::span<const std::byte> keys;
  std::span<const std::byte> values;
};

/// Rows [begin, end) of a layer, as one span each, held still for as long as this lives.
/// Threads:  read it from any; let it go in the thread that got it.
/// Lifetime: holds the cache's read lock: writers wait, and new readers stand back for a moment
///           when a writer waits. A thread that holds one cannot write (`Errc::invalid`). Moved
///           from, it is empty and holds nothing.
/// Errors:   none.
/// Cost:     one lock to take, one to let go.
class LayerRange {
 public:
  LayerRange(LayerRange&& other) noexcept;
  LayerRange& operator=(LayerRange&& other) noexcept;
  ~LayerRange();

  [[nodiscard]] std::uint32_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::uint32_t end() const noexcept { return end_; }
  [[nodiscard]] std::span<const std::byte> keys() const noexcept { return keys_; }
  [[nodiscard]] std::span<const std::byte> values() const noexcept { return values_; }

 private:
  friend class LayerCache;
  LayerRange(std::shared_ptr<detail::LayerState> state, std::uint32_t begin,
             std::uint32_t end) noexcept;
  void release() noexcept;

  std::shared_ptr<detail::LayerState> state_;
  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
  std::span<const std::byte> keys_;
  std::span<const std::byte> values_;
};

/// The rows of one layer for many threads: writers one at a time, readers together.
/// Threads:  every member from any thread at once. Copies of the handle share one cache.
/// Lifetime: the rows live as long as a handle or a range. In private memory, of this process only:
///           in a forked child every call answers `Errc::forked`.
/// Errors:   `Errc::invalid` names the value and what is allowed; a refused call changes nothing.
///           A handle that was moved from answers `Errc::invalid`, and lengths of 0.
/// Cost:     memory for `max_tokens` is taken once, as address space; pages when they are written.
///           Rows never move.
class LayerCache {
 public:
  [[nodiscard]] static Result<LayerCache> make(const LayerShape& shape = {});

  /// Opens the first `tokens` positions for writing; more than `max_tokens` is clamped. Again with
  /// more: grows, and keeps what was written; with less: changes nothing. Returns the positions
  /// that are open. 0 is `Errc::invalid`.
  [[nodiscard]] Result<std::uint32_t> initialize(std::uint32_t tokens);

  /// Writes the rows of one token, new or again.
  [[nodiscard]] Result<void> write(std::uint32_t token, std::span<const std::byte> keys,
                                   std::span<const std::byte> values);
  /// Writes all entries or, when one of them is wrong, none. In order: the last one of a token
  /// stays. Readers see all of it or nothing.
  [[nodiscard]] Result<void> write_batch(std::span<const LayerEntry> entries);

  /// The rows of one token that was written; `Errc::invalid` for any other.
  [[nodiscard]] Result<LayerRange> read(std::uint32_t token) const;
  /// Rows [begin, end). `begin` beyond `end`, or `end` beyond `length()`, is `Errc::invalid`; an
  /// empty range is fine.
  [[nodiscard]] Result<LayerRange> read_range(std::uint32_t begin, std::uint32_t end) const;

  /// Leading positions that were all written: what `read_range` can show.
  [[nodiscard]] std::uint32_t length() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return length() == 0; }
  [[nodiscard]] std::uint32_t capacity() const noexcept;  ///< positions open for writing
  [[nodiscard]] const LayerShape& shape() const noexcept;
  [[nodiscard]] std::size_t row_bytes() const noexcept;  ///< of keys, and of values

 private:
  explicit LayerCache(std::shared_ptr<detail::LayerState> state) noexcept;
  std::shared_ptr<detail::LayerState> state_;
};

/// One line with shape and length; never the buffers.
std::ostream& operator<<(std::ostream& out, const LayerCache& cache);

}  // namespace esker
