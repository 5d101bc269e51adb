// Invariants
// 1. Every block of the span is pinned from `add` to the end, so its rows stay as they are; for a
//    handle that pins nothing each copy is proved afterwards instead.
// 2. No row leaves unchecked: neither Options::verify nor an earlier check counts here.
#include "snapshot/pinned_span.hpp"

#include <algorithm>
#include <atomic>

#include "store/payload.hpp"

namespace esker::detail {

PinnedSpan::PinnedSpan(Core& core, std::size_t most) : core_(core) {
  // Room first: what is pinned has to be noted.
  body_.block_tokens = core.block_tokens();
  body_.blocks.reserve(most);
  ends_.reserve(most);
}

PinnedSpan::~PinnedSpan() { unpin_all(core_, body_); }

const BlockHeader* PinnedSpan::add(const ScannedBlock& scanned) {
  const Found found = pin_scanned(core_, scanned);
  if (!found) return nullptr;
  body_.blocks.push_back(found.pinned);
  ends_.push_back((ends_.empty() ? 0 : ends_.back()) + scanned.tokens);
  return found.header;
}

void PinnedSpan::close() {
  const std::size_t planes = core_.segments.layout().planes().size();
  body_.checked.assign(div_ceil(body_.blocks.size() * planes, 64), 0);
}

Result<void> PinnedSpan::read(std::size_t plane, std::uint32_t first_row,
                              std::span<std::byte> out) {
  const std::uint32_t row_bytes = core_.segments.layout().planes()[plane].row_bytes;
  auto number = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), first_row) -
                                         ends_.begin());
  std::uint32_t row = first_row;
  while (!out.empty()) {
    const std::uint32_t begin = number == 0 ? 0 : ends_[number - 1];
    const auto left = static_cast<std::uint32_t>(out.size() / row_bytes);
    const std::uint32_t end = std::min(ends_[number] - begin, row - begin + left);
    const TokenRange rows{row - begin, end};
    const auto now = out.first(std::size_t{rows.size()} * row_bytes);
    if (auto done = read_block(number, plane, rows, now); !done) return done;
    out = out.subspan(now.size());
    row += rows.size();
    ++number;
  }
  return {};
}

Result<void> PinnedSpan::read_block(std::size_t number, std::size_t plane, TokenRange rows,
                                    std::span<std::byte> out) {
  const std::uint32_t row_bytes = core_.segments.layout().planes()[plane].row_bytes;
  const RowSink sink{out.data(), rows.size(), 0};
  RowCursor cursor(std::span(&sink, 1), row_bytes);
  auto done = copy_rows_checked(core_, body_, number, plane, rows, cursor);
  if (!done && done.error().code == Errc::corrupt) note_failure(number);
  return done;
}

void PinnedSpan::check_all() {
  const std::size_t planes = core_.segments.layout().planes().size();
  for (std::size_t number = 0; number < body_.blocks.size(); ++number) {
    for (std::size_t plane = 0; plane < planes; ++plane) {
      if (!read_block(number, plane, {0, 0}, {})) break;
    }
  }
}

void PinnedSpan::note_failure(std::size_t number) {
  // Of a handle that pins nothing, the header tells whether it still is the same block.
  const PinnedBlock& pinned = body_.blocks[number];
  const auto* header = reinterpret_cast<const BlockHeader*>(core_.segments.header(pinned.block));
  const std::atomic_ref<const std::uint64_t> checksum(header->checksum);
  const bool damaged = core_.options.access != Access::inspect ||
                       checksum.load(std::memory_order_relaxed) == pinned.checksum;
  const std::lock_guard lock(mutex_);
  failed_.push_back({static_cast<std::uint32_t>(number), damaged});
}

std::vector<PinnedSpan::Failed> PinnedSpan::failed() const {
  const std::lock_guard lock(mutex_);
  std::vector<Failed> all = failed_;
  std::sort(all.begin(), all.end(),
            [](const Failed& a, const Failed& b) { return a.number < b.number; });
  const auto same = [](const Failed& a, const Failed& b) { return a.number == b.number; };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  return all;
}

}  // namespace esker::detail
