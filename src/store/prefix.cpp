// Invariants
// 1. A Prefix with a body holds one pin per block until it is released; a miss has no body.
// 2. In a forked child nothing is unpinned: the pins are the parent's.
#include <algorithm>
#include <cstring>
#include <esker/prefix.hpp>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "store/payload.hpp"
#include "store/walk.hpp"

namespace esker {

namespace {

using detail::fail;

struct Selection {
  std::size_t plane = 0;
  std::uint32_t row_bytes = 0;
  TokenRange range{0, 0};
};

Result<Selection> select(const detail::Core& core, const detail::PrefixBody& body,
                         std::uint32_t layer, Plane plane, TokenRange range) {
  if (auto ok = core.usable(false); !ok) return tl::make_unexpected(std::move(ok).error());
  const int index = core.segments.layout().plane_index(layer, plane);
  if (index < 0) {
    return fail(Errc::invalid, "layer " + std::to_string(layer) + " " + std::string(name(plane)) +
                                   ": no such rows; the geometry has " +
                                   std::to_string(core.superblock.geometry.layers.size()) +
                                   " layers");
  }
  if (range.begin > range.end || range.begin > body.tokens) {
    return fail(Errc::invalid, "tokens " + std::to_string(range.begin) + "…" +
                                   std::to_string(range.end) + ", allowed is a range within 0…" +
                                   std::to_string(body.tokens));
  }
  const auto at = static_cast<std::size_t>(index);
  range.end = std::min(range.end, body.tokens);
  return Selection{at, core.segments.layout().planes()[at].row_bytes, range};
}

Result<void> check_room(std::span<const RowSink> out, const Selection& selection) {
  std::uint64_t rows = 0;
  for (const RowSink& sink : out) {
    if (sink.rows > 0 && sink.data == nullptr)
      return fail(Errc::invalid, "copy: a sink has no data");
    if (sink.stride_bytes != 0 && sink.stride_bytes < selection.row_bytes) {
      return fail(Errc::invalid, "copy: stride_bytes is " + std::to_string(sink.stride_bytes) +
                                     ", less than the row's " +
                                     std::to_string(selection.row_bytes));
    }
    rows += sink.rows;
  }
  if (rows == selection.range.size()) return {};
  return fail(Errc::invalid, "copy: the output has room for " + std::to_string(rows) +
                                 " rows, the range has " + std::to_string(selection.range.size()));
}

Result<void> empty_prefix() { return fail(Errc::invalid, "this Prefix is empty: it was a miss"); }

}  // namespace

Prefix::Prefix(std::shared_ptr<detail::Core> core, detail::PrefixBody* body) noexcept
    : core_(std::move(core)), body_(body) {}

Prefix::Prefix(Prefix&& other) noexcept
    : core_(std::move(other.core_)), body_(std::exchange(other.body_, nullptr)) {}

Prefix& Prefix::operator=(Prefix&& other) noexcept {
  if (this != &other) {
    release();
    core_ = std::move(other.core_);
    body_ = std::exchange(other.body_, nullptr);
  }
  return *this;
}

Prefix::~Prefix() { release(); }

void Prefix::release() noexcept {
  if (detail::PrefixBody* body = std::exchange(body_, nullptr)) {
    if (!core_->forked()) detail::unpin_all(*core_, *body);
    core_->bodies.give(body);
  }
  core_.reset();
}

std::uint32_t Prefix::tokens() const noexcept { return body_ == nullptr ? 0 : body_->tokens; }

std::uint32_t Prefix::blocks() const noexcept {
  return body_ == nullptr ? 0 : static_cast<std::uint32_t>(body_->blocks.size());
}

const Geometry& Prefix::geometry() const noexcept {
  static const Geometry none;
  return body_ == nullptr ? none : core_->superblock.geometry;
}

const ModelId& Prefix::model() const noexcept {
  static const ModelId none;
  return body_ == nullptr ? none : core_->superblock.model;
}

void Prefix::shorten(std::uint32_t tokens) noexcept {
  if (body_ == nullptr || tokens >= body_->tokens || core_->forked()) return;
  const std::size_t blocks = detail::div_ceil(tokens, body_->block_tokens);
  for (std::size_t i = blocks; i < body_->blocks.size(); ++i) {
    core_->pins.unpin(body_->blocks[i].block);
  }
  body_->blocks.resize(blocks);
  body_->tokens = tokens;
  if (tokens == 0) release();
}

Result<Runs> Prefix::view(std::uint32_t layer, Plane plane, TokenRange range) const noexcept {
  return detail::guarded([&]() -> Result<Runs> {
    if (body_ == nullptr) return tl::make_unexpected(empty_prefix().error());
    if (core_->options.access == Access::inspect) {
      return fail(Errc::invalid,
                  "view: a handle with Access::inspect pins nothing, so the bytes could change "
                  "under it; use copy");
    }
    auto selection = select(*core_, *body_, layer, plane, range);
    if (!selection) return tl::make_unexpected(std::move(selection).error());
    const std::uint32_t block_tokens = body_->block_tokens;
    const TokenRange wanted = selection->range;
    for (std::uint32_t index = wanted.begin / block_tokens;
         !wanted.empty() && index <= (wanted.end - 1) / block_tokens; ++index) {
      if (detail::plane_checked(*core_, *body_, index, selection->plane)) continue;
      if (auto ok = detail::check_plane(*core_, *body_, index, selection->plane); !ok) {
        return tl::make_unexpected(std::move(ok).error());
      }
    }
    Runs runs;
    runs.core_ = core_.get();
    runs.body_ = body_;
    runs.plane_ = static_cast<std::uint32_t>(selection->plane);
    runs.range_ = selection->range;
    return runs;
  });
}

Result<void> Prefix::copy(std::uint32_t layer, Plane plane, TokenRange range,
                          std::span<std::byte> out) const noexcept {
  return detail::guarded([&]() -> Result<void> {
    if (body_ == nullptr) return empty_prefix();
    auto selection = select(*core_, *body_, layer, plane, range);
    if (!selection) return tl::make_unexpected(std::move(selection).error());
    const std::uint64_t wanted = std::uint64_t{selection->range.size()} * selection->row_bytes;
    if (out.size() != wanted) {
      return fail(Errc::invalid, "copy: the output has " + std::to_string(out.size()) +
                                     " bytes, the range needs " + std::to_string(wanted));
    }
    const RowSink sink{out.data(), selection->range.size(), 0};
    return copy(layer, plane, selection->range, std::span(&sink, 1));
  });
}

Result<void> Prefix::copy(std::uint32_t layer, Plane plane, TokenRange range,
                          std::span<const RowSink> out) const noexcept {
  return detail::guarded([&]() -> Result<void> {
    if (body_ == nullptr) return empty_prefix();
    auto selection = select(*core_, *body_, layer, plane, range);
    if (!selection) return tl::make_unexpected(std::move(selection).error());
    if (auto ok = check_room(out, *selection); !ok) return ok;
    detail::RowCursor cursor(out, selection->row_bytes, selection->range.size());
    const std::uint32_t block_tokens = body_->block_tokens;
    for (std::uint32_t token = selection->range.begin; token < selection->range.end;) {
      const std::uint32_t index = token / block_tokens;
      const std::uint32_t begin = token % block_tokens;
      const std::uint32_t end = std::min(block_tokens, begin + selection->range.end - token);
      if (auto ok =
              detail::copy_rows(*core_, *body_, index, selection->plane, {begin, end}, cursor);
          !ok) {
        return ok;
      }
      token += end - begin;
    }
    core_->count(detail::Counter::copied_bytes,
                 std::uint64_t{selection->range.size()} * selection->row_bytes);
    return {};
  });
}

Result<void> Prefix::verify() const noexcept {
  return detail::guarded([&]() -> Result<void> {
    if (body_ == nullptr) return {};
    if (auto ok = core_->usable(false); !ok) return ok;
    const std::size_t planes = core_->segments.layout().planes().size();
    for (std::size_t index = 0; index < body_->blocks.size(); ++index) {
      for (std::size_t plane = 0; plane < planes; ++plane) {
        if (auto ok = detail::check_plane(*core_, *body_, index, plane); !ok) return ok;
      }
    }
    return {};
  });
}

Result<std::vector<std::int32_t>> Prefix::token_ids() const {
  std::vector<std::int32_t> ids;
  if (body_ == nullptr) return ids;
  if (auto ok = core_->usable(false); !ok) return tl::make_unexpected(std::move(ok).error());
  if (body_->keys) return fail(Errc::invalid, "token_ids: a run of opaque keys has no token ids");
  ids.resize(body_->tokens);
  for (std::size_t index = 0; index < body_->blocks.size(); ++index) {
    const auto* header = reinterpret_cast<const detail::BlockHeader*>(
        core_->segments.header(body_->blocks[index].block));
    std::memcpy(ids.data() + index * body_->block_tokens, core_->prover.label(*header).data(),
                std::size_t{4} * body_->tokens_in(index));
  }
  return ids;
}

std::uint64_t Prefix::path() const noexcept {
  if (tokens() == 0 || core_->forked()) return 0;
  return reinterpret_cast<const detail::BlockHeader*>(
             core_->segments.header(body_->blocks.back().block))
      ->chain_hash;
}

Run Runs::run_at(std::uint32_t token) const noexcept {
  if (token >= range_.end) return Run{{range_.end, range_.end}, {}};
  if (token >= last_.tokens.begin) {
    const std::size_t row_bytes = last_.bytes.size() / last_.tokens.size();
    const std::size_t skipped = (token - last_.tokens.begin) * row_bytes;
    return Run{{token, range_.end}, last_.bytes.subspan(skipped, (range_.end - token) * row_bytes)};
  }
  const std::uint32_t block_tokens = body_->block_tokens;
  std::size_t index = token / block_tokens;
  const std::uint32_t in_block = token % block_tokens;
  const std::uint32_t row_bytes = core_->segments.layout().planes()[plane_].row_bytes;
  const std::byte* first =
      core_->segments.rows(body_->blocks[index].block, plane_) + std::size_t{in_block} * row_bytes;
  const std::uint32_t stop = std::min(range_.end, last_.tokens.begin);
  std::uint32_t end = std::min(stop, token - in_block + block_tokens);
  while (end < stop) {
    const detail::PinnedBlock& now = body_->blocks[index];
    const detail::PinnedBlock& next = body_->blocks[index + 1];
    if (next.block != now.block + 1 ||
        core_->segments.segment_of(next.block) != core_->segments.segment_of(now.block)) {
      break;
    }
    end = std::min(stop, end + block_tokens);
    ++index;
  }
  return Run{{token, end}, {first, std::size_t{end - token} * row_bytes}};
}

Runs::iterator Runs::begin() const noexcept {
  iterator first;
  first.runs_ = this;
  first.run_ = run_at(range_.begin);
  return first;
}

Runs::iterator Runs::end() const noexcept {
  iterator last;
  last.runs_ = this;
  last.run_.tokens = {range_.end, range_.end};
  return last;
}

Runs::iterator& Runs::iterator::operator++() noexcept {
  run_ = runs_->run_at(run_.tokens.end);
  return *this;
}

}  // namespace esker
