// Invariants
// 1. The short path of `store` makes no system call and no allocation and writes nothing but the
//    two rows and one count; every reason not to take it is found again, and named, on the long
//    one.
// 2. Nothing is written before all arguments were checked.
#include <algorithm>
#include <cstring>

#include "cache/members.hpp"

namespace esker {

namespace {

using detail::CacheCore;
using detail::fail;
using detail::number;
using detail::with_cache;

/// The plane of a layer, or which of both does not exist.
Result<detail::CachePlane> plane_of(const CacheCore& core, std::uint32_t layer, Plane plane) {
  for (const detail::CachePlane& one : core.planes()) {
    if (one.layer == layer && one.plane == plane) return one;
  }
  if (layer >= core.layer_count()) {
    return fail(Errc::invalid,
                "layer is " + number(layer) + ", allowed is 0…" + number(core.layer_count() - 1));
  }
  return fail(Errc::invalid, "layer " + number(layer) + " has no " + std::string(name(plane)) +
                                 " rows in this geometry");
}

Result<TokenRange> clip(TokenRange range, std::uint32_t length) {
  if (range.begin > range.end || range.begin > length) {
    return fail(Errc::invalid, "tokens " + number(range.begin) + "…" + number(range.end) +
                                   ", allowed is a range within 0…" + number(length));
  }
  range.end = std::min(range.end, length);
  return range;
}

Result<void> check_width(std::string_view what, std::uint32_t layer, std::size_t found,
                         std::uint64_t expected) {
  if (found == expected) return {};
  return fail(Errc::invalid, "store: " + std::string(what) + " of layer " + number(layer) +
                                 ": found " + number(found) + " bytes, expected " +
                                 number(expected));
}

Result<void> store_checked(CacheCore& core, std::uint32_t layer, std::uint32_t rows,
                           std::span<const std::byte> key_rows,
                           std::span<const std::byte> value_rows) {
  if (layer >= core.layer_count()) {
    return fail(Errc::invalid, "store: layer is " + number(layer) + ", allowed is 0…" +
                                   number(core.layer_count() - 1));
  }
  const Geometry& geometry = core.geometry();
  const std::uint64_t count = rows;
  if (auto ok = check_width(rows == 1 ? "the key row" : "the key rows", layer, key_rows.size(),
                            count * geometry.row_bytes(layer, Plane::key));
      !ok) {
    return ok;
  }
  if (auto ok = check_width(rows == 1 ? "the value row" : "the value rows", layer,
                            value_rows.size(), count * geometry.row_bytes(layer, Plane::value));
      !ok) {
    return ok;
  }
  const std::uint32_t length = core.moment().length;
  if (rows > core.max_tokens() - length) {
    return fail(Errc::full, core.named() + ": " + number(length) + " positions are committed, " +
                                number(rows) + " more do not fit into max_tokens, " +
                                number(core.max_tokens()) + "; truncate, or use a larger cache");
  }
  if (auto ready = core.prepare(length + rows); !ready) return ready;
  core.put_rows(layer, rows, key_rows, value_rows);
  return {};
}

}  // namespace

Result<void> KvCache::store(std::uint32_t layer, std::span<const std::byte> key_row,
                            std::span<const std::byte> value_row) noexcept {
  if (core_ != nullptr && core_->put(layer, key_row, value_row)) return {};
  return store_rows(layer, 1, key_row, value_row);
}

Result<void> KvCache::store_rows(std::uint32_t layer, std::uint32_t rows,
                                 std::span<const std::byte> key_rows,
                                 std::span<const std::byte> value_rows) noexcept {
  return with_cache(core_, true, [&](CacheCore& core) {
    return store_checked(core, layer, rows, key_rows, value_rows);
  });
}

Result<void> KvCache::advance(std::uint32_t n) noexcept {
  return with_cache(core_, true, [&](CacheCore& core) -> Result<void> {
    const std::uint32_t length = core.moment(std::memory_order_relaxed).length;
    if (n > core.max_tokens() - length) {
      return fail(Errc::full, core.named() + ": advance by " + number(n) + " from " +
                                  number(length) + " passes max_tokens, " +
                                  number(core.max_tokens()) + "; nothing was committed");
    }
    const std::uint32_t layer = core.first_lacking(length + n);
    if (layer < core.layer_count()) {
      return fail(Errc::invalid, "advance: layer " + number(layer) + " has stored " +
                                     number(core.stored(layer) - length) + " rows beyond " +
                                     number(length) + ", needed are " + number(n) +
                                     "; nothing was committed");
    }
    if (n > 0) core.commit(length + n);
    return {};
  });
}

std::span<const std::byte> KvCache::keys(std::uint32_t layer) const noexcept {
  if (core_ == nullptr) return {};
  return core_->rows(layer, Plane::key);
}

std::span<const std::byte> KvCache::values(std::uint32_t layer) const noexcept {
  if (core_ == nullptr) return {};
  return core_->rows(layer, Plane::value);
}

Result<Runs> KvCache::view(std::uint32_t layer, Plane plane, TokenRange range) const noexcept {
  return with_cache(core_, false, [&](const CacheCore& core) -> Result<Runs> {
    auto found = plane_of(core, layer, plane);
    if (!found) return tl::make_unexpected(std::move(found).error());
    const std::span<const std::byte> rows = core.rows(layer, plane);
    const auto stored = static_cast<std::uint32_t>(rows.size() / found->row_bytes);
    auto clipped = clip(range, stored);
    if (!clipped) return tl::make_unexpected(std::move(clipped).error());
    Runs runs;
    runs.range_ = *clipped;
    if (stored > 0) runs.last_ = Run{{0, stored}, rows};
    return runs;
  });
}

Result<void> KvCache::read(std::uint32_t layer, Plane plane, TokenRange range,
                           std::span<std::byte> out) const noexcept {
  return with_cache(core_, false, [&](const CacheCore& core) -> Result<void> {
    auto found = plane_of(core, layer, plane);
    if (!found) return tl::make_unexpected(std::move(found).error());
    return core.consistently([&](const detail::Moment& moment) -> Result<void> {
      auto clipped = clip(range, moment.length);
      if (!clipped) return tl::make_unexpected(std::move(clipped).error());
      const std::size_t wanted = std::size_t{clipped->size()} * found->row_bytes;
      if (out.size() != wanted) {
        return fail(Errc::invalid, "read: the output has " + number(out.size()) +
                                       " bytes, the range needs " + number(wanted));
      }
      if (wanted > 0) std::memcpy(out.data(), core.row(*found, clipped->begin), wanted);
      return {};
    });
  });
}

}  // namespace esker
