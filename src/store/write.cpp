// Invariants
// 1. Only rows of reserved blocks are written, through pwrite: a full or failing disk is an errno,
//    and a stray store of the engine cannot reach the cache.
// 2. A row's bit is set after its bytes are in the file. A checksum that was taken from a caller's
//    buffer counts only if that one call covered the whole plane of the block and nothing wrote to
//    it before or after.
#include <algorithm>
#include <atomic>

#include "base/hash.hpp"
#include "store/payload.hpp"
#include "store/reservation_body.hpp"

namespace esker::detail {

namespace {

std::uint64_t row_words(const ReservationBody& body, std::uint32_t block_tokens) {
  return div_ceil(body.blocks.size() * std::uint64_t{block_tokens}, 64);
}

/// Sets bits [begin, end) of a plane's bitmap of reserved rows.
void mark_rows(ReservationBody& body, std::uint64_t first_word, std::uint64_t begin,
               std::uint64_t end) {
  while (begin < end) {
    const std::uint64_t stop = std::min(end, (begin / 64 + 1) * 64);
    const std::uint64_t count = stop - begin;
    const std::uint64_t mask = (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1)
                               << (begin & 63);
    std::atomic_ref<std::uint64_t>(body.rows[first_word + begin / 64])
        .fetch_or(mask, std::memory_order_release);
    begin = stop;
  }
}

/// Rows of one call that go to adjacent blocks of one segment.
struct Stretch {
  std::uint32_t first_block = 0;  ///< index into body.blocks
  std::uint32_t first_row = 0;    ///< inside that block
  std::uint32_t rows = 0;
};

class RowWriter {
 public:
  RowWriter(Core& core, ReservationBody& body, std::size_t plane)
      : core_(core),
        body_(body),
        plane_(plane),
        block_tokens_(core.block_tokens()),
        row_bytes_(core.segments.layout().planes()[plane].row_bytes) {}

  Result<void> write(std::uint32_t token, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto left = static_cast<std::uint32_t>(bytes.size() / row_bytes_);
      const std::uint32_t page = token / block_tokens_;
      const std::uint32_t in_page = token % block_tokens_;
      const std::uint32_t dropped = rows_to_drop(page, in_page, token, left);
      std::uint32_t taken = dropped;
      if (dropped == 0) {
        const Stretch stretch = stretch_at(page, in_page, left);
        if (auto done = write_stretch(stretch, bytes); !done) return done;
        taken = stretch.rows;
      }
      token += taken;
      bytes = bytes.subspan(std::size_t{taken} * row_bytes_);
    }
    return {};
  }

 private:
  [[nodiscard]] std::int32_t block_at(std::uint32_t page) const {
    return page < body_.block_of.size() ? body_.block_of[page] : -1;
  }

  /// How many rows from here on are not wanted: stored already, or beyond what there is room for.
  [[nodiscard]] std::uint32_t rows_to_drop(std::uint32_t page, std::uint32_t in_page,
                                           std::uint32_t token, std::uint32_t left) const {
    if (token < body_.missing_begin) return std::min(left, body_.missing_begin - token);
    if (block_at(page) >= 0) return 0;
    return std::min(left, block_tokens_ - in_page);
  }

  [[nodiscard]] Stretch stretch_at(std::uint32_t page, std::uint32_t in_page,
                                   std::uint32_t left) const {
    Stretch stretch{static_cast<std::uint32_t>(block_at(page)), in_page, 0};
    const Segment* segment = core_.segments.segment_of(body_.blocks[stretch.first_block].block);
    for (std::uint32_t block = stretch.first_block;; ++page, ++block) {
      const std::uint32_t room = block_tokens_ - in_page;
      const std::uint32_t now = std::min(left - stretch.rows, room);
      stretch.rows += now;
      in_page = 0;
      const bool adjacent = now == room && stretch.rows < left &&
                            block_at(page + 1) == static_cast<std::int32_t>(block + 1) &&
                            body_.blocks[block + 1].block == body_.blocks[block].block + 1 &&
                            core_.segments.segment_of(body_.blocks[block + 1].block) == segment;
      if (!adjacent) return stretch;
    }
  }

  Result<void> write_stretch(const Stretch& stretch, std::span<const std::byte> bytes) {
    const PinnedBlock& first = body_.blocks[stretch.first_block];
    const Segment* segment = core_.segments.segment_of(first.block);
    const auto now = bytes.first(std::size_t{stretch.rows} * row_bytes_);
    const std::uint64_t offset = core_.segments.layout().row_offset(
        plane_, core_.segments.local(first.block), stretch.first_row);
    note_sums(stretch, now);
    if (auto done = segment->file.write_at(offset, now); !done) return done;
    const std::uint64_t begin =
        std::uint64_t{stretch.first_block} * block_tokens_ + stretch.first_row;
    mark_rows(body_, plane_ * row_words(body_, block_tokens_), begin, begin + stretch.rows);
    core_.count(Counter::written_bytes, now.size());
    return {};
  }

  /// Hashes the planes of blocks that this stretch covers whole; anything else has to be hashed
  /// from the file later.
  void note_sums(const Stretch& stretch, std::span<const std::byte> bytes) {
    std::uint32_t row = stretch.first_row;
    std::uint32_t left = stretch.rows;
    for (std::uint32_t block = stretch.first_block; left > 0; ++block) {
      const std::uint32_t now = std::min(left, block_tokens_ - row);
      const auto part = bytes.first(std::size_t{now} * row_bytes_);
      const std::size_t at = block * core_.segments.layout().planes().size() + plane_;
      const std::atomic_ref<std::uint8_t> state(body_.sum_states[at]);
      const bool whole = row == 0 && now == block_tokens_;
      std::uint8_t expected = 0;
      const auto next = static_cast<std::uint8_t>(whole ? sum_known : sum_broken);
      if (whole && state.compare_exchange_strong(expected, next)) {
        body_.sums[at] = xxh3(part);
      } else {
        state.store(sum_broken);
      }
      bytes = bytes.subspan(part.size());
      left -= now;
      row = 0;
    }
  }

  Core& core_;
  ReservationBody& body_;
  std::size_t plane_;
  std::uint32_t block_tokens_;
  std::uint32_t row_bytes_;
};

}  // namespace

void prepare_bookkeeping(const Core& core, ReservationBody& body) {
  const std::size_t planes = core.segments.layout().planes().size();
  body.rows.assign(planes * row_words(body, core.block_tokens()), 0);
  body.sums.assign(body.blocks.size() * planes, 0);
  body.sum_states.assign(body.blocks.size() * planes, 0);
}

Result<void> write_rows(Core& core, ReservationBody& body, std::size_t plane,
                        std::uint32_t first_token, std::span<const std::byte> rows) {
  return RowWriter(core, body, plane).write(first_token, rows);
}

Result<void> copy_block_rows(Core& core, ReservationBody& body, const PinnedBlock& source,
                             std::uint32_t rows, std::uint32_t page) {
  const std::uint32_t first_token = page * core.block_tokens();
  const std::size_t planes = core.segments.layout().planes().size();
  PrefixBody path;
  path.block_tokens = core.block_tokens();
  path.blocks.push_back(source);
  path.tokens = rows;
  path.checked.resize(div_ceil(planes, 64));
  const std::uint32_t missing_begin = body.missing_begin;
  body.missing_begin = first_token;  // these rows are ours to write
  const auto copy_plane = [&](std::size_t plane) -> Result<void> {
    const std::uint32_t row_bytes = core.segments.layout().planes()[plane].row_bytes;
    std::vector<std::byte> bytes(std::size_t{rows} * row_bytes);
    const RowSink sink{bytes.data(), rows, 0};
    RowCursor out(std::span(&sink, 1), row_bytes, rows);
    if (auto done = copy_rows(core, path, 0, plane, {0, rows}, out); !done) return done;
    return write_rows(core, body, plane, first_token, bytes);
  };
  Result<void> done;
  for (std::size_t plane = 0; plane < planes && done; ++plane) done = copy_plane(plane);
  body.missing_begin = missing_begin;
  return done;
}

void mark_carried(const Core& core, ReservationBody& body) {
  const std::size_t planes = core.segments.layout().planes().size();
  for (std::size_t plane = 0; plane < planes; ++plane) {
    mark_rows(body, plane * row_words(body, core.block_tokens()), 0, body.carried_rows);
    body.sum_states[plane] = sum_broken;
  }
}

std::uint32_t first_hole(const Core& core, const ReservationBody& body,
                         std::size_t plane) noexcept {
  const std::uint32_t block_tokens = core.block_tokens();
  const std::uint64_t first_word = plane * row_words(body, block_tokens);
  for (std::uint32_t page = 0; page < body.block_of.size(); ++page) {
    if (body.block_of[page] < 0) continue;
    const auto block = static_cast<std::uint64_t>(body.block_of[page]);
    const std::uint32_t tokens = body.tokens_of_page(page, block_tokens);
    for (std::uint32_t row = 0; row < tokens; ++row) {
      const std::uint64_t bit = block * block_tokens + row;
      if ((body.rows[first_word + bit / 64] >> (bit & 63) & 1) == 0) {
        return page * block_tokens + row;
      }
    }
  }
  return UINT32_MAX;
}

}  // namespace esker::detail
