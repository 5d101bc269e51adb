// Invariants
// 1. Every call looks first whether there is a cache behind the handle and whether this is the
//    process that made it; only then it touches a lock.
// 2. What a call is given is checked whole before the lock is taken: a refused call changes
//    nothing. That stays true below the lock, since positions are only ever opened.
#include <algorithm>
#include <esker/layer_cache.hpp>
#include <ostream>
#include <utility>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "cache/layer_state.hpp"

namespace esker {

namespace {

using detail::fail;
using detail::LayerState;

Result<void> usable(const LayerState* state, const char* call) {
  if (state == nullptr) {
    return fail(Errc::invalid, std::string("LayerCache::") + call +
                                   ": this handle was moved from; use the new one");
  }
  if (state->forked()) {
    return fail(Errc::forked, std::string("LayerCache::") + call +
                                  ": this cache belongs to the parent process; make one of your "
                                  "own after fork");
  }
  return {};
}

Result<void> usable_to_write(const LayerState* state, const char* call) {
  if (auto ok = usable(state, call); !ok) return ok;
  if (!state->held_by_this_thread()) return {};
  return fail(Errc::invalid, std::string("LayerCache::") + call +
                                 ": this thread holds a LayerRange of the cache and would wait "
                                 "for itself; let go of it first");
}

std::string positions(const LayerState& state) {
  const std::uint32_t open = state.open();
  return open == 0 ? "no position is open; call initialize first"
                   : "allowed is 0…" + std::to_string(open - 1);
}

std::string entry_fault(const LayerState& state, const LayerEntry& entry) {
  if (entry.token >= state.open()) {
    return "token is " + std::to_string(entry.token) + ", " + positions(state);
  }
  const std::size_t wanted = state.row_bytes();
  if (entry.keys.size() != wanted) {
    return "the keys of token " + std::to_string(entry.token) + " have " +
           std::to_string(entry.keys.size()) + " bytes, a row has " + std::to_string(wanted);
  }
  if (entry.values.size() != wanted) {
    return "the values of token " + std::to_string(entry.token) + " have " +
           std::to_string(entry.values.size()) + " bytes, a row has " + std::to_string(wanted);
  }
  return {};
}

detail::Failure no_memory() { return fail(Errc::no_memory, "out of memory"); }

}  // namespace

LayerRange::LayerRange(std::shared_ptr<detail::LayerState> state, std::uint32_t begin,
                       std::uint32_t end) noexcept
    : state_(std::move(state)),
      begin_(begin),
      end_(end),
      keys_(state_->keys(begin, end)),
      values_(state_->values(begin, end)) {}

LayerRange::LayerRange(LayerRange&& other) noexcept
    : state_(std::move(other.state_)),
      begin_(std::exchange(other.begin_, 0)),
      end_(std::exchange(other.end_, 0)),
      keys_(std::exchange(other.keys_, {})),
      values_(std::exchange(other.values_, {})) {}

LayerRange& LayerRange::operator=(LayerRange&& other) noexcept {
  if (this == &other) return *this;
  release();
  state_ = std::move(other.state_);
  begin_ = std::exchange(other.begin_, 0);
  end_ = std::exchange(other.end_, 0);
  keys_ = std::exchange(other.keys_, {});
  values_ = std::exchange(other.values_, {});
  return *this;
}

LayerRange::~LayerRange() { release(); }

void LayerRange::release() noexcept {
  if (state_ == nullptr) return;
  state_->let_go();
  state_.reset();
}

LayerCache::LayerCache(std::shared_ptr<detail::LayerState> state) noexcept
    : state_(std::move(state)) {}

Result<LayerCache> LayerCache::make(const LayerShape& shape) {
  return detail::guarded([&]() -> Result<LayerCache> {
    auto state = LayerState::make(shape);
    if (!state) return tl::make_unexpected(std::move(state).error());
    return LayerCache(std::move(*state));
  });
}

Result<std::uint32_t> LayerCache::initialize(std::uint32_t tokens) {
  return detail::guarded([&]() -> Result<std::uint32_t> {
    if (auto ok = usable(state_.get(), "initialize"); !ok) {
      return tl::make_unexpected(std::move(ok).error());
    }
    const std::uint32_t most = state_->shape().max_tokens;
    if (tokens == 0) {
      return fail(Errc::invalid,
                  "LayerCache::initialize: tokens is 0, allowed is 1…" + std::to_string(most));
    }
    return state_->open_up_to(std::min(tokens, most));
  });
}

Result<void> LayerCache::write(std::uint32_t token, std::span<const std::byte> keys,
                               std::span<const std::byte> values) {
  return detail::guarded([&]() -> Result<void> {
    if (auto ok = usable_to_write(state_.get(), "write"); !ok) return ok;
    const LayerEntry entry{token, keys, values};
    if (const std::string fault = entry_fault(*state_, entry); !fault.empty()) {
      return fail(Errc::invalid, "LayerCache::write: " + fault);
    }
    const auto lock = state_->lock_for_writing();
    state_->put(entry);
    state_->settle();
    return {};
  });
}

Result<void> LayerCache::write_batch(std::span<const LayerEntry> entries) {
  return detail::guarded([&]() -> Result<void> {
    if (auto ok = usable_to_write(state_.get(), "write_batch"); !ok) return ok;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (const std::string fault = entry_fault(*state_, entries[i]); !fault.empty()) {
        return fail(Errc::invalid, "LayerCache::write_batch: entry " + std::to_string(i) + " of " +
                                       std::to_string(entries.size()) + ": " + fault);
      }
    }
    if (entries.empty()) return {};
    const auto lock = state_->lock_for_writing();
    for (const LayerEntry& entry : entries) state_->put(entry);
    state_->settle();
    return {};
  });
}

Result<LayerRange> LayerCache::read(std::uint32_t token) const {
  return detail::guarded([&]() -> Result<LayerRange> {
    if (auto ok = usable(state_.get(), "read"); !ok) {
      return tl::make_unexpected(std::move(ok).error());
    }
    if (token >= state_->open()) {
      return fail(Errc::invalid, "LayerCache::read: token is " + std::to_string(token) + ", " +
                                     positions(*state_));
    }
    if (!state_->hold()) return no_memory();
    if (state_->written(token)) return LayerRange(state_, token, token + 1);
    state_->let_go();
    return fail(Errc::invalid, "LayerCache::read: token " + std::to_string(token) +
                                   " was never written; the first " +
                                   std::to_string(state_->length()) + " were");
  });
}

Result<LayerRange> LayerCache::read_range(std::uint32_t begin, std::uint32_t end) const {
  return detail::guarded([&]() -> Result<LayerRange> {
    if (auto ok = usable(state_.get(), "read_range"); !ok) {
      return tl::make_unexpected(std::move(ok).error());
    }
    if (begin > end) {
      return fail(Errc::invalid, "LayerCache::read_range: begin is " + std::to_string(begin) +
                                     ", allowed is 0…" + std::to_string(end) + ", its end");
    }
    // The length never falls: what is long enough now is so below the lock.
    if (const std::uint32_t length = state_->length(); end > length) {
      return fail(Errc::invalid, "LayerCache::read_range: end is " + std::to_string(end) +
                                     ", allowed is at most " + std::to_string(length) +
                                     ", the length");
    }
    if (!state_->hold()) return no_memory();
    return LayerRange(state_, begin, end);
  });
}

std::uint32_t LayerCache::length() const noexcept {
  return state_ == nullptr || state_->forked() ? 0 : state_->length();
}

std::uint32_t LayerCache::capacity() const noexcept {
  return state_ == nullptr || state_->forked() ? 0 : state_->open();
}

const LayerShape& LayerCache::shape() const noexcept {
  static const LayerShape none{0, 0, 0, {}};
  return state_ == nullptr ? none : state_->shape();
}

std::size_t LayerCache::row_bytes() const noexcept {
  return state_ == nullptr ? 0 : state_->row_bytes();
}

std::ostream& operator<<(std::ostream& out, const LayerCache& cache) {
  const LayerShape& shape = cache.shape();
  if (shape.max_tokens == 0) return out << "LayerCache(moved from)";
  return out << "LayerCache(" << shape.max_tokens << " tokens, " << shape.heads << " heads, "
             << shape.head_dim << " dims, " << shape.dtype << "; open " << cache.capacity()
             << ", length " << cache.length() << ")";
}

}  // namespace esker
