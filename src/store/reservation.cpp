// Invariants
// 1. A body is either published or abandoned, once; an empty Reservation has none.
// 2. Arguments are checked here, in every build; what comes after trusts them.
#include <algorithm>
#include <esker/reservation.hpp>

#include "base/error.hpp"
#include "base/guarded.hpp"
#include "store/lookup.hpp"

namespace esker {

namespace {

using detail::fail;

constexpr std::size_t gather_bytes = 65'536;

Result<std::size_t> plane_of(const detail::Core& core, std::uint32_t layer, Plane plane) {
  const int index = core.segments.layout().plane_index(layer, plane);
  if (index >= 0) return static_cast<std::size_t>(index);
  const std::size_t layers = core.superblock.geometry.layers.size();
  if (layer >= layers) {
    return fail(Errc::invalid, "layer is " + std::to_string(layer) + ", allowed is 0…" +
                                   std::to_string(layers - 1));
  }
  return fail(Errc::invalid, "layer " + std::to_string(layer) + " has no " +
                                 std::string(name(plane)) + " rows in this geometry");
}

Result<void> check_range(const detail::ReservationBody& body, std::uint32_t first_token,
                         std::uint64_t rows) {
  if (first_token <= body.prompt_tokens && rows <= body.prompt_tokens - first_token) return {};
  return fail(Errc::invalid, "write: tokens " + std::to_string(first_token) + "…" +
                                 std::to_string(first_token + rows) + " (excluded), allowed is 0…" +
                                 std::to_string(body.prompt_tokens) + ", the prompt's length");
}

/// Writes rows that lie apart, gathered into packed chunks.
class Gatherer {
 public:
  Gatherer(detail::Core& core, detail::ReservationBody& body, std::size_t plane,
           std::uint32_t first_token)
      : core_(core),
        body_(body),
        plane_(plane),
        token_(first_token),
        row_bytes_(core.segments.layout().planes()[plane].row_bytes) {}

  Result<void> add(const RowSource& piece) {
    const std::size_t stride = piece.stride_bytes == 0 ? row_bytes_ : piece.stride_bytes;
    if (stride == row_bytes_ && std::size_t{piece.rows} * row_bytes_ >= gather_bytes) {
      if (auto done = flush(); !done) return done;
      return write({piece.data, std::size_t{piece.rows} * row_bytes_});
    }
    for (std::uint32_t i = 0; i < piece.rows; ++i) {
      const std::byte* row = piece.data + i * stride;
      chunk_.insert(chunk_.end(), row, row + row_bytes_);
      if (full()) {
        if (auto done = flush(); !done) return done;
      }
    }
    return {};
  }

  Result<void> flush() {
    if (chunk_.empty()) return {};
    auto done = write(chunk_);
    chunk_.clear();
    return done;
  }

 private:
  /// Chunks end at block boundaries where they can, so that a block's plane is hashed in one go.
  [[nodiscard]] bool full() const {
    const auto rows = static_cast<std::uint32_t>(chunk_.size() / row_bytes_);
    const bool at_boundary = (token_ + rows) % core_.block_tokens() == 0;
    return chunk_.size() >= (at_boundary ? gather_bytes / 2 : gather_bytes * 4);
  }

  Result<void> write(std::span<const std::byte> rows) {
    auto done = detail::write_rows(core_, body_, plane_, token_, rows);
    token_ += static_cast<std::uint32_t>(rows.size() / row_bytes_);
    return done;
  }

  detail::Core& core_;
  detail::ReservationBody& body_;
  std::size_t plane_;
  std::uint32_t token_;
  std::uint32_t row_bytes_;
  std::vector<std::byte> chunk_;
};

Result<void> check_pieces(std::span<const RowSource> pieces, std::uint32_t row_bytes) {
  for (const RowSource& piece : pieces) {
    if (piece.rows > 0 && piece.data == nullptr) {
      return fail(Errc::invalid,
                  "write: a piece of " + std::to_string(piece.rows) + " rows has no data");
    }
    if (piece.stride_bytes != 0 && piece.stride_bytes < row_bytes) {
      return fail(Errc::invalid, "write: stride_bytes is " + std::to_string(piece.stride_bytes) +
                                     ", less than the row's " + std::to_string(row_bytes));
    }
  }
  return {};
}

Result<void> no_reservation() {
  return fail(Errc::invalid,
              "this Reservation is empty: it was published, moved from or never made");
}

}  // namespace

Reservation::Reservation(std::shared_ptr<detail::Core> core, detail::ReservationBody* body) noexcept
    : core_(std::move(core)), body_(body) {}

Reservation::Reservation(Reservation&& other) noexcept
    : core_(std::move(other.core_)), body_(std::exchange(other.body_, nullptr)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    drop();
    core_ = std::move(other.core_);
    body_ = std::exchange(other.body_, nullptr);
  }
  return *this;
}

Reservation::~Reservation() { drop(); }

void Reservation::drop() noexcept {
  if (body_ != nullptr && !core_->forked()) detail::abandon(*core_, *body_);
  delete std::exchange(body_, nullptr);
  core_.reset();
}

TokenRange Reservation::missing() const noexcept {
  if (body_ == nullptr) return {0, 0};
  return {body_->missing_begin, body_->missing_end};
}

std::uint32_t Reservation::tokens() const noexcept {
  if (body_ == nullptr) return 0;
  if (body_->keys.empty()) return body_->missing_end;
  std::uint32_t leading = 0;
  while (leading < body_->keys.size() &&
         (body_->block_of[leading] >= 0 || body_->key_blocks[leading].generation != 0)) {
    ++leading;
  }
  return leading * core_->block_tokens();
}

bool Reservation::missing_key(std::size_t index) const noexcept {
  return body_ != nullptr && !body_->keys.empty() && index < body_->block_of.size() &&
         body_->block_of[index] >= 0;
}

Result<void> Reservation::write(std::uint32_t layer, Plane plane, std::uint32_t first_token,
                                std::span<const std::byte> rows) noexcept {
  return detail::guarded([&]() -> Result<void> {
    if (body_ == nullptr) return no_reservation();
    if (auto ok = core_->usable(true); !ok) return ok;
    auto index = plane_of(*core_, layer, plane);
    if (!index) return tl::make_unexpected(std::move(index).error());
    const std::uint32_t row_bytes = core_->segments.layout().planes()[*index].row_bytes;
    if (rows.size() % row_bytes != 0) {
      return fail(Errc::invalid, "write: " + std::to_string(rows.size()) +
                                     " bytes are no whole number of rows of " +
                                     std::to_string(row_bytes) + " bytes");
    }
    if (auto ok = check_range(*body_, first_token, rows.size() / row_bytes); !ok) return ok;
    return detail::write_rows(*core_, *body_, *index, first_token, rows);
  });
}

Result<void> Reservation::write(std::uint32_t layer, Plane plane, std::uint32_t first_token,
                                std::span<const RowSource> pieces) noexcept {
  return detail::guarded([&]() -> Result<void> {
    if (body_ == nullptr) return no_reservation();
    if (auto ok = core_->usable(true); !ok) return ok;
    auto index = plane_of(*core_, layer, plane);
    if (!index) return tl::make_unexpected(std::move(index).error());
    const std::uint32_t row_bytes = core_->segments.layout().planes()[*index].row_bytes;
    if (auto ok = check_pieces(pieces, row_bytes); !ok) return ok;
    std::uint64_t rows = 0;
    for (const RowSource& piece : pieces) rows += piece.rows;
    if (auto ok = check_range(*body_, first_token, rows); !ok) return ok;
    Gatherer gatherer(*core_, *body_, *index, first_token);
    for (const RowSource& piece : pieces) {
      if (auto done = gatherer.add(piece); !done) return done;
    }
    return gatherer.flush();
  });
}

Result<Prefix> Reservation::publish() && noexcept {
  auto published = detail::guarded([&]() -> Result<Prefix> {
    if (body_ == nullptr) return tl::make_unexpected(no_reservation().error());
    if (auto ok = core_->usable(true); !ok) return tl::make_unexpected(std::move(ok).error());
    auto path = detail::publish(*core_, *body_);
    if (!path) return tl::make_unexpected(std::move(path).error());
    if ((*path)->tokens > 0) return Prefix(core_, *path);
    core_->bodies.give(*path);
    return Prefix();
  });
  // A hole can be filled and published again; anything else ends the reservation.
  if (published || published.error().code != Errc::invalid) drop();
  return published;
}

}  // namespace esker
