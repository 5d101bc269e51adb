#include "codec/compress.hpp"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace esker::detail {

namespace {

constexpr int usual_level = 3;
constexpr int max_level = 19;
/// From here on zstd weighs each match against its literals by itself.
constexpr int optimal_level = 13;
constexpr int longest_min_match = 7;

// A context costs more to make than to use, and nothing in it passes from one use to the next.
ZSTD_CCtx* compression_context() noexcept {
  thread_local const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                                  &ZSTD_freeCCtx);
  return context.get();
}

ZSTD_DCtx* decompression_context() noexcept {
  thread_local const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                                  &ZSTD_freeDCtx);
  return context.get();
}

char* chars(std::span<std::byte> bytes) noexcept { return reinterpret_cast<char*>(bytes.data()); }

const char* chars(std::span<const std::byte> bytes) noexcept {
  return reinterpret_cast<const char*>(bytes.data());
}

std::size_t compress_lz4(std::span<const std::byte> in, std::span<std::byte> out) noexcept {
  if (in.size() > LZ4_MAX_INPUT_SIZE) return 0;
  const auto room = static_cast<int>(std::min<std::size_t>(out.size(), LZ4_MAX_INPUT_SIZE));
  const int length = LZ4_compress_default(chars(in), chars(out), static_cast<int>(in.size()), room);
  return length > 0 ? static_cast<std::size_t>(length) : 0;
}

/// In planes of floats a match of a few bytes is chance, and costs more than the entropy code of
/// its bytes; only long ones, of rows that are there twice, are worth their place.
bool set_way(ZSTD_CCtx* context, const CompressWay& way) noexcept {
  const bool fast = way.level == 0 && way.of_planes;
  const int level = fast ? 1 : way.level == 0 ? usual_level : std::clamp(way.level, 1, max_level);
  bool good = ZSTD_isError(ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters)) == 0;
  const auto set = [&](ZSTD_cParameter parameter, int value) {
    good = good && ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0;
  };
  set(ZSTD_c_compressionLevel, level);
  if (way.of_planes && level < optimal_level) set(ZSTD_c_minMatch, longest_min_match);
  if (fast) set(ZSTD_c_strategy, ZSTD_fast);
  return good;
}

std::size_t compress_zstd(const CompressWay& way, std::span<const std::byte> in,
                          std::span<const std::size_t> part_ends,
                          std::span<std::byte> out) noexcept {
  ZSTD_CCtx* context = compression_context();
  if (context == nullptr || !set_way(context, way)) return 0;
  std::size_t from = 0;
  std::size_t length = 0;
  for (const std::size_t end : part_ends) {
    if (end == from) continue;
    const auto rest = out.subspan(length);
    const std::size_t frame =
        ZSTD_compress2(context, rest.data(), rest.size(), &in[from], end - from);
    if (ZSTD_isError(frame) != 0) return 0;
    length += frame;
    from = end;
  }
  return length;
}

bool decompress_lz4(std::span<const std::byte> in, std::span<std::byte> out) noexcept {
  if (in.size() > LZ4_MAX_INPUT_SIZE || out.size() > LZ4_MAX_INPUT_SIZE) return false;
  const int length = LZ4_decompress_safe(chars(in), chars(out), static_cast<int>(in.size()),
                                         static_cast<int>(out.size()));
  return length >= 0 && static_cast<std::size_t>(length) == out.size();
}

/// Frame by frame: each tells its size, which is compared with the room before it is decoded, and
/// has the magic of today's format; the library would decode those of ten years ago as well.
bool decompress_zstd(std::span<const std::byte> in, std::span<std::byte> out) noexcept {
  ZSTD_DCtx* context = decompression_context();
  if (context == nullptr) return false;
  while (!in.empty()) {
    std::uint32_t magic = 0;
    if (in.size() < sizeof magic) return false;
    std::memcpy(&magic, in.data(), sizeof magic);
    if (magic != ZSTD_MAGICNUMBER) return false;
    const std::size_t frame = ZSTD_findFrameCompressedSize(in.data(), in.size());
    if (ZSTD_isError(frame) != 0 || frame > in.size()) return false;
    const unsigned long long size = ZSTD_getFrameContentSize(in.data(), frame);
    if (size > out.size()) return false;  // also when it is unknown
    const std::size_t length =
        ZSTD_decompressDCtx(context, out.data(), static_cast<std::size_t>(size), in.data(), frame);
    if (ZSTD_isError(length) != 0 || length != size) return false;
    in = in.subspan(frame);
    out = out.subspan(length);
  }
  return out.empty();
}

}  // namespace

std::size_t compress_bound(std::size_t bytes) noexcept {
  return bytes + bytes / 128 + 8 * 128;  // above LZ4_COMPRESSBOUND and ZSTD_COMPRESSBOUND
}

std::size_t compress(const CompressWay& way, std::span<const std::byte> in,
                     std::span<const std::size_t> part_ends, std::span<std::byte> out) noexcept {
  if (in.empty()) return 0;
  if (way.method == Compression::lz4) return compress_lz4(in, out);
  if (way.method == Compression::zstd) return compress_zstd(way, in, part_ends, out);
  return 0;
}

bool decompress(Compression method, std::span<const std::byte> in,
                std::span<std::byte> out) noexcept {
  switch (method) {
    case Compression::raw:
      if (in.size() != out.size()) return false;
      if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
      return true;
    case Compression::lz4:
      return decompress_lz4(in, out);
    case Compression::zstd:
      return decompress_zstd(in, out);
  }
  return false;
}

}  // namespace esker::detail
