#include <algorithm>
#include <cstring>

#include "codec/chunk_shape.hpp"
#include "codec/codec.hpp"
#include "codec/compress.hpp"
#include "codec/filters.hpp"
#include "codec/quantise.hpp"

namespace esker::detail {

namespace {

/// Below this a sample would be all: rows are tried as they are.
constexpr std::size_t least_sample_bytes = 16U << 10;
constexpr std::size_t sample_part = 32;

/// Those that are quick to undo first: the others have to be worth it.
constexpr std::array<Filter, 6> lz4_filters{Filter::packed_3,        Filter::packed_4,
                                            Filter::planes,          Filter::none,
                                            Filter::previous_planes, Filter::channel_planes};
constexpr std::array<Filter, 5> zstd_filters{Filter::centred_planes, Filter::planes, Filter::none,
                                             Filter::previous_planes, Filter::channel_planes};

std::span<const Filter> filters_of(Compression compression) noexcept {
  if (compression == Compression::lz4) return lz4_filters;
  return zstd_filters;
}

/// Compresses what a filter left, in front of it its length where that is not told by the rows.
/// Stays as it is when that would be hardly longer, and is quicker to decode then.
Compression pack(const CompressWay& way, const Filtered& filtered, bool tell_length,
                 std::vector<std::byte>& out) {
  const std::size_t prefix = tell_length ? sizeof(std::uint32_t) : 0;
  out.resize(prefix + compress_bound(filtered.bytes.size()));
  const std::size_t length =
      compress(way, filtered.bytes, {filtered.part_end.data(), filtered.parts},
               std::span(out).subspan(prefix));
  const std::size_t worth = filtered.bytes.size() - filtered.bytes.size() / 128;
  if (length == 0 || prefix + length >= worth) {
    out.assign(filtered.bytes.begin(), filtered.bytes.end());
    return Compression::raw;
  }
  const auto told = static_cast<std::uint32_t>(filtered.bytes.size());
  std::memcpy(out.data(), &told, prefix);
  out.resize(prefix + length);
  return way.method;
}

ChunkCoding code(std::span<const std::byte> rows, const RowShape& shape, const CodecChoice& choice,
                 Filter filter, CodecMemory& memory, std::vector<std::byte>& out,
                 std::size_t* head_bytes = nullptr) {
  Filtered filtered{memory.filtered};
  apply_filter(filter, rows, shape, memory.work, filtered);
  const FilteredRange range = filtered_range(filter, shape, rows.size());
  const CompressWay way{choice.compression, choice.level, filter != Filter::none};
  const Compression used = pack(way, filtered, range.least != range.most, out);
  if (head_bytes != nullptr) *head_bytes = filtered.head_bytes;
  return {static_cast<std::uint8_t>(used), static_cast<std::uint8_t>(filter), 0};
}

/// Some rows from the middle, where prompts have left their beginning behind.
std::span<const std::byte> sample_of(std::span<const std::byte> rows, std::size_t row_bytes) {
  const std::size_t aim = std::max(least_sample_bytes, rows.size() / sample_part);
  const std::size_t count = rows.size() / row_bytes;
  const std::size_t taken = std::min(count, aim / row_bytes + 1);
  return rows.subspan((count - taken) / 2 * row_bytes, taken * row_bytes);
}

Filter best_filter(std::span<const std::byte> rows, const RowShape& shape,
                   const CodecChoice& choice, CodecMemory& memory) {
  const std::span<const std::byte> sample = sample_of(rows, shape.row_bytes);
  const double times = static_cast<double>(rows.size()) / static_cast<double>(sample.size());
  Filter best = Filter::none;
  double least = 0;
  for (const Filter filter : filters_of(choice.compression)) {
    if (!filter_fits(filter, shape)) continue;
    std::size_t head = 0;
    code(sample, shape, choice, filter, memory, memory.packed, &head);
    head = std::min(head, memory.packed.size());
    const double body = static_cast<double>(memory.packed.size() - head);
    const double estimate = static_cast<double>(head) + body * times;
    if (least != 0 && estimate >= least * 0.99) continue;
    least = estimate;
    best = filter;
  }
  return best;
}

ChunkCoding encode_exactly(std::span<const std::byte> rows, const RowShape& shape,
                           const CodecChoice& choice, CodecMemory& memory,
                           std::vector<std::byte>& stored) {
  if (choice.compression != Compression::raw) {
    const Filter filter = best_filter(rows, shape, choice, memory);
    const ChunkCoding coding = code(rows, shape, choice, filter, memory, stored);
    if (stored.size() < rows.size()) return coding;
  }
  stored.assign(rows.begin(), rows.end());
  return {};
}

/// Nothing when the rows cannot be quantised or would not get shorter.
std::optional<ChunkCoding> encode_lossy(std::span<const std::byte> rows, const RowShape& shape,
                                        const CodecChoice& choice, CodecMemory& memory,
                                        std::vector<std::byte>& stored, ErrorSums* error) {
  if (quantised_bytes(shape, choice.lossy, rows.size()) >= rows.size()) return std::nullopt;
  Filtered quantised{memory.filtered};
  if (!quantise(rows, shape, choice.lossy, quantised)) return std::nullopt;
  ChunkCoding coding;
  coding.lossy = static_cast<std::uint8_t>(choice.lossy);
  if (choice.compression == Compression::raw) {
    stored.assign(quantised.bytes.begin(), quantised.bytes.end());
  } else {
    // Codes have no repetitions that LZ4 could use, but far from equal frequencies.
    const int level = choice.compression == Compression::zstd ? choice.level : 0;
    coding.compression =
        static_cast<std::uint8_t>(pack({Compression::zstd, level, true}, quantised, false, stored));
  }
  if (error != nullptr) {
    memory.work.resize(rows.size());
    dequantise(memory.filtered, shape, choice.lossy, memory.work);
    error->add(measure(rows, memory.work, shape));
  }
  return coding;
}

}  // namespace

Result<ChunkCoding> encode_chunk(std::span<const std::byte> rows, const RowShape& given,
                                 const CodecChoice& choice, CodecMemory& memory,
                                 std::vector<std::byte>& stored, ErrorSums* error) {
  if (auto good = check_rows(rows.size(), given); !good) return failure_of(good);
  const RowShape shape = usable_shape(given);
  if (choice.lossy != Lossy::none && !can_quantise(shape)) {
    return fail(Errc::invalid, "lossy " + std::string(name(choice.lossy)) +
                                   " needs elements of f16, bf16 or f32; export without it");
  }
  stored.clear();
  if (rows.empty()) return ChunkCoding{};
  if (choice.lossy != Lossy::none) {
    const auto coding = encode_lossy(rows, shape, choice, memory, stored, error);
    if (coding) return *coding;
    if (error != nullptr) error->add(exact_sums(rows, shape));
  }
  return encode_exactly(rows, shape, choice, memory, stored);
}

}  // namespace esker::detail
