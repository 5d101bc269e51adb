// Invariants
// 1. Bytes count as verified for (block, generation) only while this handle pinned that life, or,
//    for a handle that cannot pin, when the header still was the one that was proved after the
//    bytes had been read.
// 2. A damaged payload condemns the block for everyone.
#include "store/payload.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "store/retire.hpp"

namespace esker::detail {

namespace {

constexpr std::size_t piece_bytes = 16'384;  // stays in L1 between hashing and copying

struct Source {
  const BlockHeader* header = nullptr;
  std::span<const std::byte> rows;
};

Source source_of(const Core& core, const PinnedBlock& pinned, std::size_t plane) noexcept {
  const auto* header = reinterpret_cast<const BlockHeader*>(core.segments.header(pinned.block));
  const std::uint32_t tokens = std::min(header->tokens, core.block_tokens());
  const std::uint32_t row_bytes = core.segments.layout().planes()[plane].row_bytes;
  return {header, {core.segments.rows(pinned.block, plane), std::size_t{tokens} * row_bytes}};
}

/// After the bytes were read: was it this life all along?
bool unchanged(const Core& core, const PinnedBlock& pinned, const BlockHeader& header) noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);
  if (std::atomic_ref<const std::uint64_t>(header.checksum).load(std::memory_order_relaxed) !=
      pinned.checksum) {
    return false;
  }
  const BlockWord word = core.word(pinned.block);
  return word.generation == pinned.generation &&
         (word.state == BlockState::ready || word.state == BlockState::retired);
}

Failure changed_failure(const Core& core, const PinnedBlock& pinned) {
  return fail(Errc::corrupt, core.directory.path() + ": block " + std::to_string(pinned.block) +
                                 " changed while it was read; look the prompt up again");
}

Failure damaged_failure(const Core& core, const PinnedBlock& pinned, std::size_t plane) {
  const PlaneRegion& region = core.segments.layout().planes()[plane];
  return fail(Errc::corrupt,
              core.segments_directory.path() + "/" +
                  segment_name(pinned.block / core.superblock.segment_blocks) + ": block " +
                  std::to_string(pinned.block) + ", layer " + std::to_string(region.layer) + " " +
                  std::string(name(region.plane)) +
                  ": the payload does not match its checksum; the block is never served again, "
                  "look the prompt up again");
}

std::atomic_ref<std::uint64_t> checked_word(PrefixBody& body, std::size_t bit) noexcept {
  return std::atomic_ref<std::uint64_t>(body.checked[bit / 64]);
}

bool all_planes_checked(PrefixBody& body, std::size_t index, std::size_t planes) noexcept {
  const std::size_t end = (index + 1) * planes;
  for (std::size_t bit = index * planes; bit < end;) {
    const std::size_t count = std::min(end - bit, 64 - (bit & 63));
    const std::uint64_t ones = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    const std::uint64_t word = checked_word(body, bit).load(std::memory_order_relaxed);
    if ((word >> (bit & 63) & ones) != ones) return false;
    bit += count;
  }
  return true;
}

void mark_checked(Core& core, PrefixBody& body, std::size_t index, std::size_t plane) noexcept {
  const std::size_t planes = core.segments.layout().planes().size();
  const std::size_t bit = index * planes + plane;
  checked_word(body, bit).fetch_or(std::uint64_t{1} << (bit & 63), std::memory_order_relaxed);
  if (core.options.access != Access::inspect && all_planes_checked(body, index, planes)) {
    const PinnedBlock& pinned = body.blocks[index];
    core.verified(pinned.block).store(pinned.generation, std::memory_order_relaxed);
  }
}

/// Ends a verifying pass: `sum` was computed over all rows of the plane.
Result<void> judge(Core& core, PrefixBody& body, std::size_t index, std::size_t plane,
                   std::uint64_t sum) {
  const PinnedBlock& pinned = body.blocks[index];
  const Source source = source_of(core, pinned, plane);
  const std::uint64_t expected = core.prover.sum(*source.header, plane);
  if (!unchanged(core, pinned, *source.header)) return changed_failure(core, pinned);
  core.count(Counter::verified_bytes, source.rows.size());
  if (sum != expected) {
    condemn(core, pinned.block, core.word(pinned.block), "payload");
    return damaged_failure(core, pinned, plane);
  }
  mark_checked(core, body, index, plane);
  return {};
}

/// Hashes the rows and copies those in `rows` while they are in cache. `next` is what will be
/// hashed after them.
std::uint64_t hash_and_copy(std::span<const std::byte> bytes, TokenRange rows, RowCursor& out,
                            const std::byte* next) noexcept {
  const std::uint32_t row_bytes = out.row_bytes();
  if (bytes.size() <= piece_bytes) {
    const std::uint64_t sum = xxh3(bytes);
    out.put(bytes.data() + std::size_t{rows.begin} * row_bytes, rows.size(), next);
    return sum;
  }
  const auto total = static_cast<std::uint32_t>(bytes.size() / row_bytes);
  const auto step = static_cast<std::uint32_t>(std::max<std::size_t>(1, piece_bytes / row_bytes));
  StreamingHash hash;
  for (std::uint32_t row = 0; row < total; row += step) {
    const std::uint32_t end = std::min(total, row + step);
    const std::byte* piece = bytes.data() + std::size_t{row} * row_bytes;
    hash.update({piece, std::size_t{end - row} * row_bytes});
    const std::uint32_t first = std::max(row, rows.begin);
    const std::uint32_t last = std::min(end, rows.end);
    const std::byte* then = end < total ? bytes.data() + std::size_t{end} * row_bytes : next;
    if (first < last) out.put(piece + std::size_t{first - row} * row_bytes, last - first, then);
  }
  return hash.digest();
}

/// The body itself has seen this plane checked.
bool noted(const Core& core, const PrefixBody& body, std::size_t index,
           std::size_t plane) noexcept {
  const std::size_t bit = index * core.segments.layout().planes().size() + plane;
  auto& word = const_cast<std::uint64_t&>(body.checked[bit / 64]);
  return (std::atomic_ref<std::uint64_t>(word).load(std::memory_order_relaxed) >> (bit & 63) & 1) !=
         0;
}

/// A plane of a block, and whether its payload has been checked.
struct PlaneAt {
  std::size_t index = 0;
  std::size_t plane = 0;
  bool checked = false;
};

Result<void> copy_plane(Core& core, PrefixBody& body, const PlaneAt& at, TokenRange rows,
                        RowCursor& out) {
  const PinnedBlock& pinned = body.blocks[at.index];
  const Source source = source_of(core, pinned, at.plane);
  if (std::size_t{rows.end} * out.row_bytes() > source.rows.size()) {
    return changed_failure(core, pinned);
  }
  if (!at.checked) {
    const std::byte* next = at.index + 1 < body.blocks.size()
                                ? core.segments.rows(body.blocks[at.index + 1].block, at.plane)
                                : nullptr;
    return judge(core, body, at.index, at.plane, hash_and_copy(source.rows, rows, out, next));
  }
  out.put(source.rows.data() + std::size_t{rows.begin} * out.row_bytes(), rows.size());
  if (!unchanged(core, pinned, *source.header)) return changed_failure(core, pinned);
  return {};
}

}  // namespace

void RowCursor::put_packed(std::byte* target, const std::byte* source, std::size_t bytes,
                           const std::byte* next) const noexcept {
  if (streams_) {
    stream_copy(target, source, bytes, next);
  } else {
    std::memcpy(target, source, bytes);
  }
}

void RowCursor::put(const std::byte* source, std::uint32_t rows, const std::byte* next) noexcept {
  while (rows > 0 && !sinks_.empty()) {
    const RowSink& sink = sinks_.front();
    const std::uint32_t now = std::min(rows, sink.rows - used_);
    const std::size_t stride = sink.stride_bytes == 0 ? row_bytes_ : sink.stride_bytes;
    std::byte* target = sink.data + used_ * stride;
    if (stride == row_bytes_) {
      const std::size_t bytes = std::size_t{now} * row_bytes_;
      put_packed(target, source, bytes, next);
      if (next != nullptr) next += bytes;
    } else {
      for (std::uint32_t i = 0; i < now; ++i) {
        std::memcpy(target + i * stride, source + std::size_t{i} * row_bytes_, row_bytes_);
      }
    }
    source += std::size_t{now} * row_bytes_;
    rows -= now;
    used_ += now;
    if (used_ == sink.rows) {
      sinks_ = sinks_.subspan(1);
      used_ = 0;
    }
  }
}

bool plane_checked(const Core& core, const PrefixBody& body, std::size_t index,
                   std::size_t plane) noexcept {
  if (core.options.verify == Verify::always) return false;
  const PinnedBlock& pinned = body.blocks[index];
  if (core.verified(pinned.block).load(std::memory_order_relaxed) == pinned.generation) return true;
  if (core.options.verify == Verify::never &&
      core.control.check(pinned.block).load(std::memory_order_relaxed) != 0) {
    return true;
  }
  return noted(core, body, index, plane);
}

Result<void> check_plane(Core& core, PrefixBody& body, std::size_t index, std::size_t plane) {
  return judge(core, body, index, plane, xxh3(source_of(core, body.blocks[index], plane).rows));
}

Result<void> copy_rows(Core& core, PrefixBody& body, std::size_t index, std::size_t plane,
                       TokenRange rows, RowCursor& out) {
  return copy_plane(core, body, {index, plane, plane_checked(core, body, index, plane)}, rows, out);
}

Result<void> copy_rows_checked(Core& core, PrefixBody& body, std::size_t index, std::size_t plane,
                               TokenRange rows, RowCursor& out) {
  return copy_plane(core, body, {index, plane, noted(core, body, index, plane)}, rows, out);
}

}  // namespace esker::detail
