// Invariants
// 1. This file only checks whether the handle may be used, and hands over: what happens stands in
//    the files beside it.
#include <cerrno>
#include <esker/store.hpp>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "store/attach.hpp"
#include "store/cold_tier.hpp"
#include "store/create.hpp"
#include "store/freeze.hpp"
#include "store/house.hpp"
#include "store/lookup.hpp"
#include "store/observe.hpp"
#include "store/reap.hpp"
#include "store/resize.hpp"
#include "store/thaw.hpp"
#include "sync/event_ring.hpp"

namespace esker {

namespace {

using detail::Core;
using detail::fail;

Result<void> check_identity(const Core& core, const Geometry& geometry, const ModelId& model) {
  const std::string& path = core.directory.path();
  if (const std::string what = core.superblock.geometry.difference(geometry); !what.empty()) {
    return fail(Errc::incompatible, path + ": the store has another geometry, " + what +
                                        " (the store's first); use a store of its own");
  }
  const std::string named = core.superblock.model.difference(model);
  if (named.empty()) return {};
  return fail(Errc::incompatible, path + ": the store belongs to another model, " + named +
                                      " (the store's first); use a store of its own");
}

/// A handle of the parent after fork, or one that was moved from: everything is a miss.
bool unusable(const std::shared_ptr<Core>& core) noexcept {
  return core == nullptr || core->forked();
}

template <class F>
auto when_usable(const std::shared_ptr<Core>& core, bool for_writing, F&& run) -> decltype(run()) {
  if (core == nullptr) return fail(Errc::invalid, "this Store was moved from");
  if (auto ok = core->usable(for_writing); !ok) return tl::make_unexpected(std::move(ok).error());
  return detail::guarded(std::forward<F>(run));
}

}  // namespace

Store::Store(std::shared_ptr<Core> core) noexcept : core_(std::move(core)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::create(const std::string& path, const Geometry& geometry, const ModelId& model,
                            const Options& options) {
  return detail::guarded([&]() -> Result<Store> {
    if (options.access != Access::write) {
      return fail(Errc::invalid, path + ": a store can only be created with Access::write");
    }
    if (auto made = detail::create_store(path, geometry, model, options); !made) {
      return tl::make_unexpected(std::move(made).error());
    }
    auto opened = open(path, geometry, model, options);
    // A store that finds no disk for its control file would only be in the way.
    if (!opened && opened.error().os_error == ENOSPC) {
      static_cast<void>(detail::destroy_store(path));
    }
    return opened;
  });
}

Result<Store> Store::open(const std::string& path, const Options& options) {
  return detail::guarded([&]() -> Result<Store> {
    auto core = detail::attach(path, options);
    if (!core) return tl::make_unexpected(std::move(core).error());
    return Store(std::move(*core));
  });
}

Result<Store> Store::open(const std::string& path, const Geometry& geometry, const ModelId& model,
                          const Options& options) {
  return detail::guarded([&]() -> Result<Store> {
    auto store = open(path, options);
    if (!store) return store;
    if (auto same = check_identity(*store->core_, geometry, model); !same) {
      return tl::make_unexpected(std::move(same).error());
    }
    return store;
  });
}

Result<Store> Store::open_or_create(const std::string& path, const Geometry& geometry,
                                    const ModelId& model, const Options& options) {
  constexpr int most_rounds = 16;
  auto opened = open(path, geometry, model, options);
  for (int round = 0; round < most_rounds; ++round) {
    if (opened || opened.error().code != Errc::missing || options.access != Access::write) break;
    auto created = create(path, geometry, model, options);
    if (created || created.error().code != Errc::invalid) return created;
    opened = open(path, geometry, model, options);
    // No store although one could not be made: the reason is with the directory or the options.
    if (!opened && opened.error().code == Errc::missing) return created;
  }
  return opened;
}

Result<void> Store::destroy(const std::string& path) {
  return detail::guarded([&] { return detail::destroy_store(path); });
}

Result<Resized> Store::resize(const std::string& path, const ResizeOptions& options) {
  return detail::guarded([&] { return detail::resize_store(path, options); });
}

std::uint32_t Store::match(Tokens tokens, Namespace name_space) const noexcept {
  return unusable(core_) ? 0 : detail::match(*core_, tokens, name_space);
}

Prefix Store::lookup(Tokens tokens, Namespace name_space) const noexcept {
  if (unusable(core_)) return {};
  detail::PrefixBody* body = detail::lookup(*core_, tokens, name_space);
  return body == nullptr ? Prefix() : Prefix(core_, body);
}

Result<Prefix> Store::lookup_path(std::uint64_t path) const {
  return when_usable(core_, false, [&]() -> Result<Prefix> {
    detail::PrefixBody* body = detail::pin_path(*core_, path);
    if (body == nullptr) {
      return fail(Errc::invalid, core_->directory.path() + ": there is no path " +
                                     detail::hex(path) + "; see `esker ls`");
    }
    return Prefix(core_, body);
  });
}

Result<Reservation> Store::reserve(Tokens tokens, Namespace name_space) noexcept {
  return detail::guarded([&]() -> Result<Reservation> {
    return when_usable(core_, true, [&]() -> Result<Reservation> {
      if (core_->options.thaw) {
        static_cast<void>(detail::thaw_missing(*core_, tokens, name_space, 0));
      }
      auto body = detail::reserve(*core_, tokens, name_space);
      if (!body) return tl::make_unexpected(std::move(body).error());
      return Reservation(core_, body->release());
    });
  });
}

std::uint32_t Store::match_keys(std::span<const Key> keys, std::span<bool> found,
                                Namespace name_space) const noexcept {
  if (unusable(core_) || name_space.size() > detail::max_namespace_bytes) {
    for (bool& one : found) one = false;
    return 0;
  }
  return detail::match_keys(*core_, keys, found, name_space);
}

Prefix Store::lookup_keys(std::span<const Key> keys, Namespace name_space) const noexcept {
  if (unusable(core_)) return {};
  detail::PrefixBody* body = detail::lookup_keys(*core_, keys, name_space);
  return body == nullptr ? Prefix() : Prefix(core_, body);
}

Result<Reservation> Store::reserve_keys(std::span<const Key> keys, Namespace name_space) noexcept {
  return detail::guarded([&]() -> Result<Reservation> {
    return when_usable(core_, true, [&]() -> Result<Reservation> {
      if (core_->options.thaw) {
        static_cast<void>(detail::thaw_missing_keys(*core_, keys, name_space));
      }
      auto body = detail::reserve_keys(*core_, keys, name_space);
      if (!body) return tl::make_unexpected(std::move(body).error());
      return Reservation(core_, body->release());
    });
  });
}

Result<Freed> Store::evict(std::uint64_t target_bytes, bool dry_run) {
  return when_usable(core_, !dry_run, [&]() -> Result<Freed> {
    return detail::evict_to(*core_, target_bytes, dry_run);
  });
}

Result<Freed> Store::evict_older_than(std::uint64_t unix_ns, bool dry_run) {
  return when_usable(core_, !dry_run, [&]() -> Result<Freed> {
    return detail::evict_unused_since(*core_, unix_ns, dry_run);
  });
}

Result<Freed> Store::remove(std::span<const std::uint64_t> paths, bool dry_run) {
  return when_usable(core_, !dry_run, [&] { return detail::remove_paths(*core_, paths, dry_run); });
}

Result<Freed> Store::trim(std::uint64_t keep_free_bytes, bool dry_run) {
  return when_usable(core_, !dry_run,
                     [&] { return detail::trim(*core_, keep_free_bytes, dry_run); });
}

Result<Frozen> Store::freeze(std::uint64_t unix_ns, const FreezeOptions& options) {
  return when_usable(core_, !options.dry_run,
                     [&] { return detail::freeze(*core_, unix_ns, options); });
}

Result<std::uint32_t> Store::thaw(Tokens tokens, Namespace name_space) {
  return when_usable(core_, true, [&] { return detail::thaw(*core_, tokens, name_space); });
}

bool Store::prefetch(Tokens tokens, Namespace name_space) noexcept {
  if (unusable(core_)) return false;
  auto added = detail::guarded([&]() -> Result<bool> {
    return detail::can_thaw(*core_, tokens, name_space) &&
           core_->cold->prefetcher.add(tokens, name_space);
  });
  return added && *added;
}

Result<std::uint32_t> Store::reap() {
  return when_usable(core_, true,
                     [&]() -> Result<std::uint32_t> { return detail::reap_dead(*core_); });
}

Result<VerifyReport> Store::verify(const Progress& progress) const {
  return when_usable(core_, false, [&] { return detail::verify(*core_, progress); });
}

Result<void> Store::sync() const {
  return when_usable(core_, false, [&]() -> Result<void> {
    for (std::uint32_t i = 0; i < core_->segments.count(); ++i) {
      const detail::Segment* segment = core_->segments.segment(i);
      if (segment == nullptr) continue;
      if (auto done = segment->file.sync(); !done) return done;
    }
    return {};
  });
}

const Geometry& Store::geometry() const noexcept {
  static const Geometry none;
  return core_ == nullptr ? none : core_->superblock.geometry;
}

const ModelId& Store::model() const noexcept {
  static const ModelId none;
  return core_ == nullptr ? none : core_->superblock.model;
}

Result<Info> Store::info() const {
  return when_usable(core_, false, [&]() -> Result<Info> {
    return detail::describe_store(core_->directory, core_->superblock);
  });
}

Stats Store::stats() const noexcept {
  if (unusable(core_)) return {};
  core_->follow_growth();
  return detail::gather_stats(*core_);
}

std::vector<Process> Store::processes() const {
  if (unusable(core_)) return {};
  return detail::list_processes(*core_);
}

std::vector<Event> Store::events(std::uint64_t since) const {
  if (unusable(core_)) return {};
  return detail::read_events(core_->control, since);
}

Result<std::vector<PathInfo>> Store::paths() const {
  return when_usable(core_, false,
                     [&]() -> Result<std::vector<PathInfo>> { return detail::list_paths(*core_); });
}

Result<std::vector<BlockInfo>> Store::blocks() const {
  return when_usable(core_, false, [&]() -> Result<std::vector<BlockInfo>> {
    return detail::list_blocks(*core_);
  });
}

}  // namespace esker
