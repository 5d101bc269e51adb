#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/geometry.hpp>
#include <esker/prefix.hpp>
#include <esker/result.hpp>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace esker {

class Store;

namespace detail {
class CacheCore;
}  // namespace detail

/// What a handle of a cache file may do.
enum class CacheAccess : std::uint8_t {
  write,  ///< everything; one handle at a time on the whole host
  read,   ///< read while somebody else writes; takes no lock
};

/// How a cache file is created and opened.
/// Threads:  a plain value.
/// Lifetime: read during the call only.
/// Errors:   none of its own.
/// Cost:     none.
struct CacheFileOptions {
  CacheAccess access = CacheAccess::write;
  /// What else changes KV bytes. Kept in the file. Not empty: an existing file must have the same.
  ModelId model;
  /// See Options::allow_unsafe_file_system.
  bool allow_unsafe_file_system = false;
};

/// A place in a cache to come back to; see KvCache::rollback.
/// Threads:  a plain value.
/// Lifetime: of use only with the handle that made it, until something below it is dropped.
/// Errors:   none.
/// Cost:     none.
struct KvMark {
  std::uint32_t tokens = 0;  ///< committed positions at the mark
  std::uint64_t cache = 0;   ///< which handle made it
  std::uint64_t serial = 0;  ///< cuts that this handle had made by then
};

/// The used part of a cache, copied.
/// Threads:  const members from any thread.
/// Lifetime: owns its bytes; outlives the cache.
/// Errors:   none.
/// Cost:     tokens × token_bytes of memory.
class KvSnapshot {
 public:
  [[nodiscard]] std::uint32_t tokens() const noexcept { return tokens_; }
  [[nodiscard]] const Geometry& geometry() const noexcept { return geometry_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return rows_.size(); }

 private:
  friend class KvCache;
  Geometry geometry_;
  ModelId model_;
  std::uint32_t tokens_ = 0;
  std::vector<std::byte> rows_;  ///< plane after plane
};

/// The cache that an engine writes token by token: per layer one contiguous run of K rows and one
/// of V rows, in private memory or in a file.
/// Threads:  one writer. Others may call const members meanwhile; what `keys` and `values` show
///           stays as it is until the writer drops those positions. `read` notices that.
/// Lifetime: spans die with the handle. A file lives on: after SIGKILL it holds every committed
///           token, after a power cut those of the last `sync`. In a forked child a handle of a
///           file answers `Errc::forked`; one in private memory is a copy of its own there.
/// Errors:   `Errc::invalid` names the value and what is allowed, `Errc::full` the capacity.
///           Nothing is ever dropped silently.
/// Cost:     `store` is one memcpy per row, `advance` one store; `keys` and `values` are pointers.
///           The room for all of `max_tokens` is taken at once on disk, in memory when touched.
class KvCache {
 public:
  /// `geometry.block_tokens` does not matter here.
  [[nodiscard]] static Result<KvCache> in_memory(const Geometry& geometry, std::uint32_t max_tokens,
                                                 const ModelId& model = {});
  /// Makes a new file. `Errc::invalid` when something is there already.
  [[nodiscard]] static Result<KvCache> create(const std::string& path, const Geometry& geometry,
                                              std::uint32_t max_tokens,
                                              const CacheFileOptions& options = {});
  /// `Errc::missing` when there is none, `Errc::busy` names the process that writes to it.
  [[nodiscard]] static Result<KvCache> open(const std::string& path,
                                            const CacheFileOptions& options = {});
  /// Opens what is there, if its rows, dtype and max_tokens are these, or creates it.
  [[nodiscard]] static Result<KvCache> open_or_create(const std::string& path,
                                                      const Geometry& geometry,
                                                      std::uint32_t max_tokens,
                                                      const CacheFileOptions& options = {});

  KvCache(KvCache&&) noexcept;
  KvCache& operator=(KvCache&&) noexcept;
  ~KvCache();

  [[nodiscard]] std::uint32_t length() const noexcept;  ///< committed positions
  [[nodiscard]] std::uint32_t max_tokens() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return length() == 0; }
  [[nodiscard]] const Geometry& geometry() const noexcept;
  [[nodiscard]] const ModelId& model() const noexcept;

  /// Writes the rows of position `length()`. Readable at once, in this handle, by `keys` and
  /// `values`; everyone else sees it after `advance`. Again for the same layer: overwrites.
  [[nodiscard]] Result<void> store(std::uint32_t layer, std::span<const std::byte> key_row,
                                   std::span<const std::byte> value_row) noexcept;
  /// The same for `rows` packed rows, at positions `length()` and on: a prefill.
  [[nodiscard]] Result<void> store_rows(std::uint32_t layer, std::uint32_t rows,
                                        std::span<const std::byte> key_rows,
                                        std::span<const std::byte> value_rows) noexcept;
  /// Commits `n` positions. `Errc::invalid` names a layer that has not stored them, `Errc::full`
  /// means past `max_tokens`; then nothing is committed.
  [[nodiscard]] Result<void> advance(std::uint32_t n = 1) noexcept;

  /// Rows [0, stored) of a layer, without a copy: committed ones, and what was stored since.
  /// Empty for a layer or plane that does not exist.
  [[nodiscard]] std::span<const std::byte> keys(std::uint32_t layer) const noexcept;
  [[nodiscard]] std::span<const std::byte> values(std::uint32_t layer) const noexcept;
  /// Calls `visit(position, row)` for each of them, in order.
  template <class Visit>
  void for_each_key(std::uint32_t layer, Visit&& visit) const {
    each_row(keys(layer), geometry().row_bytes(layer, Plane::key), visit);
  }
  template <class Visit>
  void for_each_value(std::uint32_t layer, Visit&& visit) const {
    each_row(values(layer), geometry().row_bytes(layer, Plane::value), visit);
  }
  /// One span as Runs, for BatchView and for code that takes both kinds of memory.
  [[nodiscard]] Result<Runs> view(std::uint32_t layer, Plane plane,
                                  TokenRange range = {}) const noexcept;
  /// Copies committed rows as they stood together at one moment, also beside a writer in another
  /// process. `Errc::busy` when the writer kept dropping positions in every attempt.
  [[nodiscard]] Result<void> read(std::uint32_t layer, Plane plane, TokenRange range,
                                  std::span<std::byte> out) const noexcept;

  /// Drops positions from `tokens` on, and what was stored without `advance`. Never extends,
  /// zeroes nothing.
  [[nodiscard]] Result<void> truncate(std::uint32_t tokens) noexcept;
  /// Length 0, and zeros where rows were.
  [[nodiscard]] Result<void> clear() noexcept;

  /// Remembers this length, for a loop that drafts and verifies.
  [[nodiscard]] KvMark mark() const noexcept;
  /// Keeps at most `accepted` positions beyond the mark and drops the rest. Returns the length,
  /// which is less than wanted where this cache holds less (a draft cache lags by one).
  /// `Errc::invalid` for a mark of another handle, or when something below it was dropped since.
  [[nodiscard]] Result<std::uint32_t> rollback(const KvMark& mark,
                                               std::uint32_t accepted = 0) noexcept;

  /// Copies the committed rows, and only those.
  [[nodiscard]] Result<KvSnapshot> snapshot() const noexcept;
  /// Puts them back in place of what is there. Layers, rows, dtype, model and length are compared
  /// first: `Errc::incompatible` names the difference, and the cache stays as it was.
  [[nodiscard]] Result<void> restore(const KvSnapshot& snapshot) noexcept;

  /// Takes the rows of a prefix from position `from` on, verified while they are copied; what is
  /// below `from` stays. An error while copying (`Errc::corrupt`) and an empty prefix (a miss)
  /// leave `from` positions. Model ids are compared where both are named.
  [[nodiscard]] Result<void> load(const Prefix& prefix, std::uint32_t from = 0) noexcept;
  /// Publishes what the store lacks of `tokens`, whose rows are the first ones here. Returns the
  /// pinned path; shorter than `tokens` when the store is full.
  [[nodiscard]] Result<Prefix> save(Store& store, Tokens tokens,
                                    std::string_view name_space = {}) const noexcept;

  /// Waits until all committed rows are on disk, with checksums that prove them after a power cut.
  /// Cost: hashes what was stored since the last time. Nothing to do in private memory.
  [[nodiscard]] Result<void> sync() noexcept;

 private:
  explicit KvCache(std::unique_ptr<detail::CacheCore> core) noexcept;
  template <class Visit>
  static void each_row(std::span<const std::byte> rows, std::size_t row_bytes, Visit& visit) {
    for (std::uint32_t at = 0; !rows.empty(); ++at, rows = rows.subspan(row_bytes)) {
      visit(at, rows.first(row_bytes));
    }
  }

  std::unique_ptr<detail::CacheCore> core_;
};

/// One line with shape and length; never the buffers.
std::ostream& operator<<(std::ostream& out, const KvCache& cache);

}  // namespace esker
