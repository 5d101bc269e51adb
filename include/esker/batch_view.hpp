#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/kv_cache.hpp>
#include <esker/prefix.hpp>
#include <esker/result.hpp>
#include <esker/session.hpp>
#include <span>
#include <variant>
#include <vector>

namespace esker {

/// One sequence of a batch, wherever its rows lie.
using BatchSlot = std::variant<const KvCache*, const Session*, const Prefix*>;

/// The sequences that one step of continuous batching attends to, behind one interface.
/// Threads:  const members from any thread; the sequences' own rules hold for their writers.
/// Lifetime: borrows every sequence: they must outlive it and stay where they are. Positions are
///           looked up at each call, so a view serves many steps.
/// Errors:   `make` refuses sequences whose layers, rows, dtype or (where named) models differ, and
///           names the difference.
///           `Errc::invalid` names a slot or layer that does not exist; payload damage is
///           `Errc::corrupt`, as in Prefix::view.
/// Cost:     `keys` and `values` are what Prefix::view costs; nothing is allocated.
class BatchView {
 public:
  /// An empty Prefix (a miss) fits every batch: it has no rows.
  [[nodiscard]] static Result<BatchView> make(std::span<const BatchSlot> slots);

  [[nodiscard]] std::size_t slot_count() const noexcept { return slots_.size(); }
  /// The position of the slot's next token: rows that it has in every layer. 0 for a slot that
  /// does not exist.
  [[nodiscard]] std::uint32_t position(std::size_t slot) const noexcept;
  /// Rows [0, position(slot)) of a layer, and behind them those that a KvCache has stored for the
  /// token in hand but not committed: what attention looks at. As few runs as the memory allows:
  /// one for a KvCache.
  [[nodiscard]] Result<Runs> keys(std::size_t slot, std::uint32_t layer) const noexcept;
  [[nodiscard]] Result<Runs> values(std::size_t slot, std::uint32_t layer) const noexcept;
  /// Of all slots; `block_tokens` is that of the first slot that is not empty.
  [[nodiscard]] const Geometry& geometry() const noexcept { return geometry_; }

 private:
  [[nodiscard]] Result<Runs> rows(std::size_t slot, std::uint32_t layer,
                                  Plane plane) const noexcept;

  std::vector<BatchSlot> slots_;
  Geometry geometry_;
};

}  // namespace esker
