#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/result.hpp>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

namespace esker {

namespace detail {
class Core;
struct PrefixBody;
struct Sequence;
}  // namespace detail

/// Consecutive rows in memory: `bytes.size() == tokens.size() * row_bytes`.
struct Run {
  TokenRange tokens;
  std::span<const std::byte> bytes;
};

/// A place for `rows` rows, `stride_bytes` apart; 0 means packed. Engines hold pages, not one
/// buffer.
struct RowSink {
  std::byte* data = nullptr;
  std::uint32_t rows = 0;
  std::size_t stride_bytes = 0;
};

/// A lazy range of runs: as few as the placement allows, one when all blocks are adjacent.
/// Threads:  a value; iterate it where you like while its source lives.
/// Lifetime: borrows from the Prefix, Session or KvCache that made it. Name it before you iterate:
///           in `for (run : prefix.view(…).value())` it would be gone.
/// Errors:   none.
/// Cost:     nothing is allocated; each step looks at the next blocks only.
class Runs {
 public:
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Run;
    using difference_type = std::ptrdiff_t;
    using pointer = const Run*;
    using reference = const Run&;

    iterator() = default;
    reference operator*() const noexcept { return run_; }
    pointer operator->() const noexcept { return &run_; }
    iterator& operator++() noexcept;
    iterator operator++(int) noexcept {
      iterator old = *this;
      ++*this;
      return old;
    }
    friend bool operator==(const iterator& a, const iterator& b) noexcept {
      return a.run_.tokens.begin == b.run_.tokens.begin;
    }

   private:
    friend class Runs;
    const Runs* runs_ = nullptr;
    Run run_;
  };

  [[nodiscard]] iterator begin() const noexcept;
  [[nodiscard]] iterator end() const noexcept;

 private:
  friend class KvCache;
  friend class Prefix;
  friend class Session;
  [[nodiscard]] Run run_at(std::uint32_t token) const noexcept;

  const detail::Core* core_ = nullptr;
  const detail::PrefixBody* body_ = nullptr;  ///< the rows below those of `last_`
  std::uint32_t plane_ = 0;
  TokenRange range_{0, 0};
  Run last_{{UINT32_MAX, UINT32_MAX}, {}};  ///< rows in one piece, from its first token on
};

/// The longest stored path for some tokens: pinned, immutable, empty when it is a miss.
/// Threads:  const members from any thread. One thread moves or destroys it, after the others.
/// Lifetime: its bytes stay as they are until it dies, whatever happens to the store, to the path
///           or to the process that wrote it. Keeps the mapping alive, also after the Store is
///           gone. Never use it after fork: its memory is not mapped in the child.
/// Errors:   `Errc::corrupt` from `view`, `copy` or `verify`: the block is marked BAD and never
///           served again; give up this load and look up again (shorter). `Errc::invalid` names a
///           layer, plane or range that does not exist.
/// Cost:     making one is a lookup; `view` and `copy` make no system call and no allocation.
class Prefix {
 public:
  Prefix() noexcept = default;
  Prefix(Prefix&&) noexcept;
  Prefix& operator=(Prefix&&) noexcept;
  ~Prefix();

  [[nodiscard]] bool empty() const noexcept { return tokens() == 0; }
  /// Tokens covered, from position 0 on. May end inside a block: hits are exact to the token.
  [[nodiscard]] std::uint32_t tokens() const noexcept;
  /// Blocks pinned. For a run of opaque keys this is the number of keys found.
  [[nodiscard]] std::uint32_t blocks() const noexcept;
  /// Of the store that it comes from; without layers when it is empty.
  [[nodiscard]] const Geometry& geometry() const noexcept;
  [[nodiscard]] const ModelId& model() const noexcept;

  /// Lets go of everything behind the first `tokens` tokens. Never extends.
  void shorten(std::uint32_t tokens) noexcept;

  /// The rows of one layer and plane in place, verified as Options::verify asks. `Errc::invalid`
  /// for Access::inspect, which pins nothing: there only `copy` can tell what it read.
  [[nodiscard]] Result<Runs> view(std::uint32_t layer, Plane plane,
                                  TokenRange range = {}) const noexcept;

  /// Verifies and copies in one pass; `out` holds exactly the rows of `range`.
  [[nodiscard]] Result<void> copy(std::uint32_t layer, Plane plane, TokenRange range,
                                  std::span<std::byte> out) const noexcept;
  /// The same into a list of pieces whose rows add up to the range. On an error the pieces may hold
  /// rows that did not check: throw them away.
  [[nodiscard]] Result<void> copy(std::uint32_t layer, Plane plane, TokenRange range,
                                  std::span<const RowSink> out) const noexcept;

  /// Checks every payload checksum now, whatever Options::verify says.
  [[nodiscard]] Result<void> verify() const noexcept;

  /// The tokens themselves, read from the labels. `Errc::invalid` for a run of opaque keys.
  [[nodiscard]] Result<std::vector<std::int32_t>> token_ids() const;

  /// The stable name of the path: the hash chained over its labels; 0 for an empty Prefix.
  [[nodiscard]] std::uint64_t path() const noexcept;

 private:
  friend class Store;
  friend class Reservation;
  friend struct detail::Sequence;
  Prefix(std::shared_ptr<detail::Core> core, detail::PrefixBody* body) noexcept;
  void release() noexcept;

  std::shared_ptr<detail::Core> core_;
  detail::PrefixBody* body_ = nullptr;
};

}  // namespace esker
