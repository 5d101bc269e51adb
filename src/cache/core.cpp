// Invariants
// 1. length ≤ stored(layer) ≤ ready_ ≤ max_tokens for every layer of a handle that writes.
// 2. A drop below the committed length starts a new epoch before anything else can write there.
// 3. cuts_ is strictly ascending in serial and in tokens, so the first cut after a mark is the
//    deepest one after it.
#include "cache/core.hpp"

#include <algorithm>
#include <cstring>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "cache/populate.hpp"

namespace esker::detail {

namespace {

constexpr std::uint64_t step_bytes = std::uint64_t{8} << 20;
constexpr std::uint64_t least_bulk_bytes = std::uint64_t{1} << 20;
const volatile std::uint8_t always_alive = 1;

}  // namespace

Result<std::unique_ptr<CacheCore>> CacheCore::in_memory(const Geometry& geometry,
                                                        std::uint32_t max_tokens,
                                                        const ModelId& model) {
  auto layout = CacheLayout::make(geometry, max_tokens, false);
  if (!layout) return tl::make_unexpected(std::move(layout).error());
  const std::uint64_t alignment = layout->alignment();
  auto memory = ZeroMemory::allocate(layout->bytes() + alignment);
  if (!memory) return tl::make_unexpected(std::move(memory).error());
  std::unique_ptr<CacheCore> core(new CacheCore);
  core->memory_ = std::move(*memory);
  core->own_header_.max_tokens = max_tokens;
  core->own_header_.geometry = geometry;
  core->own_header_.model = model;
  core->own_header_.layout = std::move(*layout);
  core->alive_ = &always_alive;
  core->ready_ = max_tokens;
  const auto address = reinterpret_cast<std::uintptr_t>(core->memory_.data());
  core->set_up(core->memory_.data() + (align_up(address, alignment) - address));
  return core;
}

Result<std::unique_ptr<CacheCore>> CacheCore::in_file(std::unique_ptr<CacheFile> file) {
  std::unique_ptr<CacheCore> core(new CacheCore);
  core->file_ = std::move(file);
  core->alive_ = core->file_->alive();
  core->reading_ = !core->file_->writable();
  const Moment now = core->file_->moment(std::memory_order_acquire);
  core->set_up(core->file_->data());
  core->word_.store(now.pack(), std::memory_order_release);
  core->ready_ = core->populated_ = now.length;
  core->set_stored(now.length);
  return core;
}

void CacheCore::set_up(std::byte* base) {
  base_ = base;
  id_ = random_u64();
  layer_count_ = static_cast<std::uint32_t>(geometry().layers.size());
  layers_ = std::make_unique<CacheLayer[]>(layer_count_);
  for (const CachePlane& plane : planes()) {
    CacheLayer& layer = layers_[plane.layer];
    (plane.plane == Plane::key ? layer.key_rows : layer.value_rows) = base_ + plane.offset;
    (plane.plane == Plane::key ? layer.key_row_bytes : layer.value_row_bytes) = plane.row_bytes;
  }
  cuts_.reserve(64);
}

std::string CacheCore::named() const { return file_ != nullptr ? file_->path() : "this cache"; }

Result<void> CacheCore::usable(bool for_writing) const {
  if (forked()) {
    return fail(Errc::forked, named() +
                                  ": this handle belongs to the parent process; open the cache "
                                  "again after fork");
  }
  if (for_writing && reading_) {
    return fail(Errc::invalid,
                named() + ": access is read, expected write; open it with CacheAccess::write");
  }
  return {};
}

Result<void> CacheCore::never_still() const {
  return fail(Errc::busy, named() +
                              ": the writer kept dropping positions while they were copied; try "
                              "again");
}

std::uint32_t CacheCore::stored(std::uint32_t layer) const noexcept {
  if (forked() || layer >= layer_count_) return 0;
  return reading_ ? moment().length : layers_[layer].stored.load(std::memory_order_acquire);
}

std::span<const std::byte> CacheCore::rows(std::uint32_t layer, Plane plane) const noexcept {
  const std::uint32_t count = stored(layer);
  if (count == 0) return {};
  const CacheLayer& from = layers_[layer];
  const bool key = plane == Plane::key;
  const std::uint32_t row_bytes = key ? from.key_row_bytes : from.value_row_bytes;
  if (row_bytes == 0) return {};
  return {key ? from.key_rows : from.value_rows, std::size_t{count} * row_bytes};
}

bool CacheCore::put(std::uint32_t layer, std::span<const std::byte> key_row,
                    std::span<const std::byte> value_row) noexcept {
  if (forked() || reading_ || layer >= layer_count_) return false;
  CacheLayer& to = layers_[layer];
  const std::uint32_t at = moment(std::memory_order_relaxed).length;
  if (key_row.size() != to.key_row_bytes || value_row.size() != to.value_row_bytes ||
      at >= ready_) {
    return false;
  }
  put_rows(layer, 1, key_row, value_row);
  return true;
}

void CacheCore::put_rows(std::uint32_t layer, std::uint32_t rows,
                         std::span<const std::byte> key_rows,
                         std::span<const std::byte> value_rows) noexcept {
  CacheLayer& to = layers_[layer];
  const std::uint32_t at = moment(std::memory_order_relaxed).length;
  if (!key_rows.empty()) {
    std::memcpy(to.key_rows + std::size_t{at} * to.key_row_bytes, key_rows.data(), key_rows.size());
  }
  if (!value_rows.empty()) {
    std::memcpy(to.value_rows + std::size_t{at} * to.value_row_bytes, value_rows.data(),
                value_rows.size());
  }
  if (to.stored.load(std::memory_order_relaxed) < at + rows) {
    to.stored.store(at + rows, std::memory_order_release);
  }
}

Result<void> CacheCore::prepare(std::uint32_t end) {
  if (end <= populated_) return {};
  const std::uint64_t token_bytes = geometry().token_bytes();
  const std::uint32_t begin = std::max(populated_, moment(std::memory_order_relaxed).length);
  if (file_ == nullptr) {
    // A few rows take their pages when they come: caches of short sequences stay small.
    if (begin >= end || (end - begin) * token_bytes < least_bulk_bytes) return {};
    if (auto done = populate(base_, header().layout, {begin, end}, named(), true); !done)
      return done;
    populated_ = end;
    return {};
  }
  const std::uint64_t step = std::max<std::uint64_t>(1, step_bytes / token_bytes);
  const auto target = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(max_tokens(), std::max<std::uint64_t>(end, populated_ + step)));
  if (target > file_->touched()) file_->set_touched(target);
  if (auto done = populate(base_, header().layout, {populated_, target}, named(), false); !done) {
    return done;
  }
  populated_ = ready_ = target;
  return {};
}

std::uint32_t CacheCore::first_lacking(std::uint32_t end) const noexcept {
  std::uint32_t layer = 0;
  while (layer < layer_count_ && layers_[layer].stored.load(std::memory_order_relaxed) >= end) {
    ++layer;
  }
  return layer;
}

void CacheCore::publish(const Moment& moment) noexcept {
  word_.store(moment.pack(), std::memory_order_release);
  if (file_ != nullptr) file_->publish(moment);
}

void CacheCore::commit(std::uint32_t end) noexcept {
  Moment now = moment(std::memory_order_relaxed);
  now.length = end;
  publish(now);
}

void CacheCore::set_stored(std::uint32_t end) noexcept {
  for (std::uint32_t layer = 0; layer < layer_count_; ++layer) {
    layers_[layer].stored.store(end, std::memory_order_release);
  }
}

std::uint32_t CacheCore::most_stored() const noexcept {
  std::uint32_t most = 0;
  for (std::uint32_t layer = 0; layer < layer_count_; ++layer) {
    most = std::max(most, layers_[layer].stored.load(std::memory_order_relaxed));
  }
  return most;
}

void CacheCore::drop(std::uint32_t tokens) {
  Moment now = moment(std::memory_order_relaxed);
  highest_ = std::max(highest_, most_stored());
  if (tokens < now.length) {
    if (cuts_.size() == cuts_.capacity()) cuts_.reserve(2 * cuts_.capacity() + 1);
    while (!cuts_.empty() && cuts_.back().tokens >= tokens) cuts_.pop_back();
    cuts_.push_back({serial_.fetch_add(1, std::memory_order_relaxed) + 1, tokens});
    if (file_ != nullptr) file_->forget_sums(tokens);
    publish({now.epoch + 1, tokens, true});
  }
  set_stored(std::min(tokens, now.length));
  // Whoever sees a row that is written from here on also sees the new epoch.
  std::atomic_thread_fence(std::memory_order_release);
}

void CacheCore::wipe() {
  drop(0);
  const std::uint32_t written = file_ != nullptr ? file_->touched() : highest_;
  for (const CachePlane& plane : planes()) {
    std::memset(row(plane, 0), 0, std::size_t{written} * plane.row_bytes);
  }
  highest_ = 0;
  if (file_ == nullptr) return;
  file_->set_touched(0);
  ready_ = populated_ = 0;
}

Result<void> CacheCore::sync() {
  if (file_ == nullptr) return {};
  return file_->sync(moment(std::memory_order_relaxed).length);
}

KvMark CacheCore::mark() const noexcept {
  return {forked() ? 0 : moment(std::memory_order_relaxed).length, id_,
          serial_.load(std::memory_order_relaxed)};
}

bool CacheCore::stale(const KvMark& mark) const noexcept {
  const auto after =
      std::upper_bound(cuts_.begin(), cuts_.end(), mark.serial,
                       [](std::uint64_t serial, const Cut& cut) { return serial < cut.serial; });
  return after != cuts_.end() && after->tokens < mark.tokens;
}

}  // namespace esker::detail
