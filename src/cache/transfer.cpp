// Invariants
// 1. `restore` and `load` compare everything before they drop a position.
// 2. Rows that come from elsewhere are written above the committed length, and committed when all
//    of them are there: nobody ever sees some of them.
// 3. What `snapshot` and `save` took counts only if no position was dropped meanwhile.
#include <algorithm>
#include <cstring>

#include <esker/store.hpp>
#include "cache/members.hpp"

namespace esker {

namespace {

using detail::CacheCore;
using detail::CachePlane;
using detail::fail;
using detail::number;
using detail::with_cache;

std::span<const std::byte> committed(const CacheCore& core, const CachePlane& plane,
                                     TokenRange range) {
  return {core.row(plane, range.begin), std::size_t{range.size()} * plane.row_bytes};
}

Result<void> check_prefix(const CacheCore& core, const Prefix& prefix, std::uint32_t from) {
  const std::uint32_t length = core.moment().length;
  const std::uint32_t most = prefix.empty() ? length : std::min(length, prefix.tokens());
  if (from > most) {
    return fail(Errc::invalid, "load: from is " + number(from) + ", allowed is 0…" + number(most) +
                                   ": the cache has " + number(length) + " positions, the prefix " +
                                   number(prefix.tokens()));
  }
  if (prefix.empty()) return {};
  const std::string what = detail::identity_difference(core, prefix.geometry(), prefix.model());
  if (!what.empty()) {
    return fail(Errc::incompatible,
                "load: the cache and the prefix differ in " + what + " (the cache's first)");
  }
  if (prefix.tokens() <= core.max_tokens()) return {};
  return fail(Errc::full, "load: the prefix has " + number(prefix.tokens()) +
                              " tokens, the cache room for " + number(core.max_tokens()) +
                              "; shorten the prefix, or use a larger cache");
}

Result<void> copy_prefix(const CacheCore& core, const Prefix& prefix, TokenRange range) {
  for (const CachePlane& plane : core.planes()) {
    const std::span<std::byte> out(core.row(plane, range.begin),
                                   std::size_t{range.size()} * plane.row_bytes);
    if (auto done = prefix.copy(plane.layer, plane.plane, range, out); !done) return done;
  }
  return {};
}

Result<void> write_missing(const CacheCore& core, Reservation& room) {
  const TokenRange missing = room.missing();
  if (missing.empty()) return {};
  for (const CachePlane& plane : core.planes()) {
    auto done =
        room.write(plane.layer, plane.plane, missing.begin, committed(core, plane, missing));
    if (!done) return done;
  }
  return {};
}

}  // namespace

Result<KvSnapshot> KvCache::snapshot() const noexcept {
  return with_cache(core_, false, [&](const CacheCore& core) -> Result<KvSnapshot> {
    KvSnapshot taken;
    taken.geometry_ = core.geometry();
    taken.model_ = core.model();
    auto done = core.consistently([&](const detail::Moment& moment) -> Result<void> {
      taken.tokens_ = moment.length;
      taken.rows_.clear();
      taken.rows_.reserve(moment.length * core.geometry().token_bytes());
      for (const CachePlane& plane : core.planes()) {
        const auto rows = committed(core, plane, {0, moment.length});
        taken.rows_.insert(taken.rows_.end(), rows.begin(), rows.end());
      }
      return {};
    });
    if (!done) return tl::make_unexpected(std::move(done).error());
    return taken;
  });
}

Result<void> KvCache::restore(const KvSnapshot& snapshot) noexcept {
  return with_cache(core_, true, [&](CacheCore& core) -> Result<void> {
    std::string what = detail::identity_difference(core, snapshot.geometry_, snapshot.model_);
    if (what.empty() && snapshot.tokens_ > core.max_tokens()) {
      what = "length: room for " + number(core.max_tokens()) + " and " + number(snapshot.tokens_) +
             " tokens";
    }
    const std::uint64_t bytes = snapshot.tokens_ * core.geometry().token_bytes();
    if (what.empty() && snapshot.rows_.size() != bytes) {
      what = "bytes: " + number(bytes) + " and " + number(snapshot.rows_.size());
    }
    if (!what.empty()) {
      return fail(Errc::incompatible, "restore: the cache and the snapshot differ in " + what +
                                          " (the cache's first); nothing was changed");
    }
    if (auto ready = core.prepare(snapshot.tokens_); !ready) return ready;
    core.drop(0);
    std::size_t at = 0;
    for (const CachePlane& plane : core.planes()) {
      const std::size_t plane_bytes = std::size_t{snapshot.tokens_} * plane.row_bytes;
      if (plane_bytes > 0) {
        std::memcpy(core.row(plane, 0), snapshot.rows_.data() + at, plane_bytes);
      }
      at += plane_bytes;
    }
    core.set_stored(snapshot.tokens_);
    core.commit(snapshot.tokens_);
    return {};
  });
}

Result<void> KvCache::load(const Prefix& prefix, std::uint32_t from) noexcept {
  return with_cache(core_, true, [&](CacheCore& core) -> Result<void> {
    if (auto ok = check_prefix(core, prefix, from); !ok) return ok;
    if (auto ready = core.prepare(prefix.tokens()); !ready) return ready;
    core.drop(from);
    if (from >= prefix.tokens()) return {};
    if (auto done = copy_prefix(core, prefix, {from, prefix.tokens()}); !done) {
      core.note_written(prefix.tokens());
      return done;
    }
    core.set_stored(prefix.tokens());
    core.commit(prefix.tokens());
    return {};
  });
}

Result<Prefix> KvCache::save(Store& store, Tokens tokens,
                             std::string_view name_space) const noexcept {
  return with_cache(core_, false, [&](const CacheCore& core) -> Result<Prefix> {
    const std::string what = detail::identity_difference(core, store.geometry(), store.model());
    if (!what.empty()) {
      return fail(Errc::incompatible, "save: the cache and the store differ in " + what +
                                          " (the cache's first); use a store of its own");
    }
    Result<Reservation> room = fail(Errc::io, {});
    auto done = core.consistently([&](const detail::Moment& moment) -> Result<void> {
      if (tokens.size() > moment.length) {
        return fail(Errc::invalid, "save: " + number(tokens.size()) +
                                       " tokens, but the cache has committed rows of " +
                                       number(moment.length));
      }
      room = fail(Errc::io, {});  // lets go of the blocks of an attempt before
      room = store.reserve(tokens, name_space);
      if (!room) return tl::make_unexpected(room.error());
      return write_missing(core, *room);
    });
    if (!done) return tl::make_unexpected(std::move(done).error());
    return std::move(*room).publish();
  });
}

}  // namespace esker
