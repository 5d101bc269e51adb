#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/prefix.hpp>
#include <esker/result.hpp>
#include <memory>
#include <span>

namespace esker {

namespace detail {
struct ReservationBody;
}  // namespace detail

/// `rows` rows in the caller's memory, `stride_bytes` apart; 0 means packed.
struct RowSource {
  const std::byte* data = nullptr;
  std::uint32_t rows = 0;
  std::size_t stride_bytes = 0;
};

/// Private, writable room for what the store does not hold yet of a prompt.
/// Threads:  `write` from any number of threads at once, for different rows. Whoever calls
///           `publish` or destroys it must have synchronised with the writers first.
/// Lifetime: pins the path it continues. Dropped or killed before `publish`, it leaves nothing.
/// Errors:   a full disk or a failing one is `Errc::io` from `write`; nothing becomes visible then.
///           A full cache is no error: `tokens()` is what will be stored.
/// Cost:     `write` is one pwrite per run of adjacent blocks; `publish` one small pwrite per
///           block.
class Reservation {
 public:
  Reservation() noexcept = default;
  Reservation(Reservation&&) noexcept;
  Reservation& operator=(Reservation&&) noexcept;
  ~Reservation();

  /// The positions to write. Empty when everything is stored already, or nothing more can be.
  /// For opaque keys: positions count through the keys in order, `block_tokens` each; keys that are
  /// stored already are skipped by `missing_key`.
  [[nodiscard]] TokenRange missing() const noexcept;
  /// Tokens that the path will hold after `publish`, from position 0 on.
  [[nodiscard]] std::uint32_t tokens() const noexcept;
  /// For opaque keys: true when key `index` has room here and wants its rows.
  [[nodiscard]] bool missing_key(std::size_t index) const noexcept;

  /// Stores packed rows for positions [first_token, first_token + rows.size() / row_bytes). Rows of
  /// the prompt outside `missing()` are accepted and dropped, so that an engine can hand over a
  /// whole prompt. The bytes are copied before the call returns.
  [[nodiscard]] Result<void> write(std::uint32_t layer, Plane plane, std::uint32_t first_token,
                                   std::span<const std::byte> rows) noexcept;
  /// The same from a list of pieces: pages, or rows inside a wider record.
  [[nodiscard]] Result<void> write(std::uint32_t layer, Plane plane, std::uint32_t first_token,
                                   std::span<const RowSource> pieces) noexcept;

  /// Makes the path findable for every process, and returns it pinned. Rows that were never written
  /// are `Errc::invalid` by name, and nothing is published: write them and publish again. If
  /// another process published the same blocks meanwhile, theirs are adopted. An I/O error at a
  /// block leaves the blocks before it published; the message says how many.
  [[nodiscard]] Result<Prefix> publish() && noexcept;

 private:
  friend class Session;
  friend class Store;
  Reservation(std::shared_ptr<detail::Core> core, detail::ReservationBody* body) noexcept;
  void drop() noexcept;

  std::shared_ptr<detail::Core> core_;
  detail::ReservationBody* body_ = nullptr;
};

}  // namespace esker
