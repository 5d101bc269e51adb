// Invariants
// 1. This file only checks whether the handle may be used, and hands over: what happens stands in
//    the files beside it.
#include <algorithm>
#include <ostream>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "cache/members.hpp"

namespace esker {

namespace {

using detail::CacheCore;
using detail::CacheFile;
using detail::fail;
using detail::number;
using detail::with_cache;
using CorePointer = std::unique_ptr<CacheCore>;

Result<CorePointer> create_core(const std::string& path, const Geometry& geometry,
                                std::uint32_t max_tokens, const CacheFileOptions& options) {
  if (options.access != CacheAccess::write) {
    return fail(Errc::invalid, path + ": a cache can only be created with CacheAccess::write");
  }
  auto layout = detail::CacheLayout::make(geometry, max_tokens, true);
  if (!layout) return tl::make_unexpected(std::move(layout).error());
  detail::CacheHeader header;
  if (!detail::fill_random(header.uuid)) {
    return fail(Errc::io, "the kernel's random generator gives nothing");
  }
  header.created_unix_ns = detail::unix_ns();
  header.max_tokens = max_tokens;
  header.geometry = geometry;
  header.model = options.model;
  header.layout = std::move(*layout);
  auto file = CacheFile::create(path, std::move(header), options);
  if (!file) return tl::make_unexpected(std::move(file).error());
  return CacheCore::in_file(std::move(*file));
}

Result<CorePointer> open_core(const std::string& path, const CacheFileOptions& options) {
  auto file = CacheFile::open(path, options);
  if (!file) return tl::make_unexpected(std::move(file).error());
  return CacheCore::in_file(std::move(*file));
}

Result<void> check_shape(const CacheCore& core, const Geometry& geometry,
                         std::uint32_t max_tokens) {
  std::string what = core.geometry().row_difference(geometry);
  if (what.empty() && core.max_tokens() != max_tokens) {
    what = "max_tokens: " + number(core.max_tokens()) + " and " + number(max_tokens);
  }
  if (what.empty()) return {};
  return fail(Errc::incompatible, core.named() + ": the cache has another shape, " + what +
                                      " (the cache's first); use a cache of its own");
}

}  // namespace

KvCache::KvCache(CorePointer core) noexcept : core_(std::move(core)) {}
KvCache::KvCache(KvCache&&) noexcept = default;
KvCache& KvCache::operator=(KvCache&&) noexcept = default;
KvCache::~KvCache() = default;

Result<KvCache> KvCache::in_memory(const Geometry& geometry, std::uint32_t max_tokens,
                                   const ModelId& model) {
  return detail::guarded([&]() -> Result<KvCache> {
    auto core = CacheCore::in_memory(geometry, max_tokens, model);
    if (!core) return tl::make_unexpected(std::move(core).error());
    return KvCache(std::move(*core));
  });
}

Result<KvCache> KvCache::create(const std::string& path, const Geometry& geometry,
                                std::uint32_t max_tokens, const CacheFileOptions& options) {
  return detail::guarded([&]() -> Result<KvCache> {
    auto core = create_core(path, geometry, max_tokens, options);
    if (!core) return tl::make_unexpected(std::move(core).error());
    return KvCache(std::move(*core));
  });
}

Result<KvCache> KvCache::open(const std::string& path, const CacheFileOptions& options) {
  return detail::guarded([&]() -> Result<KvCache> {
    auto core = open_core(path, options);
    if (!core) return tl::make_unexpected(std::move(core).error());
    return KvCache(std::move(*core));
  });
}

Result<KvCache> KvCache::open_or_create(const std::string& path, const Geometry& geometry,
                                        std::uint32_t max_tokens, const CacheFileOptions& options) {
  constexpr int most_rounds = 16;
  auto opened = open(path, options);
  for (int round = 0; round < most_rounds; ++round) {
    if (opened || opened.error().code != Errc::missing || options.access != CacheAccess::write) {
      break;
    }
    auto created = create(path, geometry, max_tokens, options);
    if (created || created.error().code != Errc::invalid) return created;
    opened = open(path, options);
    // Nothing there although it could not be made: the reason is with the arguments.
    if (!opened && opened.error().code == Errc::missing) return created;
  }
  if (!opened) return opened;
  return detail::guarded([&]() -> Result<KvCache> {
    if (auto same = check_shape(*opened->core_, geometry, max_tokens); !same) {
      return tl::make_unexpected(std::move(same).error());
    }
    return std::move(opened);
  });
}

std::uint32_t KvCache::length() const noexcept {
  return core_ == nullptr || core_->forked() ? 0 : core_->moment().length;
}

std::uint32_t KvCache::max_tokens() const noexcept {
  return core_ == nullptr ? 0 : core_->max_tokens();
}

const Geometry& KvCache::geometry() const noexcept {
  static const Geometry none;
  return core_ == nullptr ? none : core_->geometry();
}

const ModelId& KvCache::model() const noexcept {
  static const ModelId none;
  return core_ == nullptr ? none : core_->model();
}

Result<void> KvCache::truncate(std::uint32_t tokens) noexcept {
  return with_cache(core_, true, [&](CacheCore& core) -> Result<void> {
    core.drop(tokens);
    return {};
  });
}

Result<void> KvCache::clear() noexcept {
  return with_cache(core_, true, [&](CacheCore& core) -> Result<void> {
    core.wipe();
    return {};
  });
}

KvMark KvCache::mark() const noexcept { return core_ == nullptr ? KvMark{} : core_->mark(); }

Result<std::uint32_t> KvCache::rollback(const KvMark& mark, std::uint32_t accepted) noexcept {
  return with_cache(core_, true, [&](CacheCore& core) -> Result<std::uint32_t> {
    if (!core.made(mark)) {
      return fail(Errc::invalid, "rollback: this mark was made by another handle");
    }
    if (core.stale(mark)) {
      return fail(Errc::invalid, "rollback: positions below the mark, " + number(mark.tokens) +
                                     ", were dropped since it was made; mark again");
    }
    const std::uint64_t wanted = std::uint64_t{mark.tokens} + accepted;
    const std::uint32_t length = core.moment().length;
    core.drop(static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, length)));
    return core.moment().length;
  });
}

Result<void> KvCache::sync() noexcept {
  return with_cache(core_, true, [](CacheCore& core) { return core.sync(); });
}

std::ostream& operator<<(std::ostream& out, const KvCache& cache) {
  const Geometry& geometry = cache.geometry();
  return out << "KvCache: " << cache.length() << " of " << cache.max_tokens() << " tokens, "
             << geometry.layers.size() << " layers, " << geometry.token_bytes()
             << " bytes per token, dtype " << geometry.dtype;
}

}  // namespace esker
