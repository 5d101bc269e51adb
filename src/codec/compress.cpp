#include "codec/compress.hpp"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace esker::detail {

namespace {

constexpr int default_zstd_level = 3;
constexpr int max_zstd_level = 19;

// A context costs more to make than to use, and holds nothing between two uses.
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
  const auto room = static_cast<int>(std::min<std::size_t>(out.size(), INT32_MAX));
  const int length = LZ4_compress_default(chars(in), chars(out), static_cast<int>(in.size()), room);
  return length > 0 ? static_cast<std::size_t>(length) : 0;
}

std::size_t compress_zstd(int level, std::span<const std::byte> in,
                          std::span<std::byte> out) noexcept {
  ZSTD_CCtx* context = compression_context();
  if (context == nullptr) return 0;
  const int used = level == 0 ? default_zstd_level : std::clamp(level, 1, max_zstd_level);
  const std::size_t length =
      ZSTD_compressCCtx(context, out.data(), out.size(), in.data(), in.size(), used);
  return ZSTD_isError(length) != 0 ? 0 : length;
}

}  // namespace

std::size_t compress_bound(std::size_t bytes) noexcept {
  return bytes + bytes / 128 + 1024;  // above LZ4_COMPRESSBOUND and ZSTD_COMPRESSBOUND
}

std::size_t compress(Compression method, int level, std::span<const std::byte> in,
                     std::span<std::byte> out) noexcept {
  if (in.empty()) return 0;
  std::size_t length = 0;
  if (method == Compression::lz4) length = compress_lz4(in, out);
  if (method == Compression::zstd) length = compress_zstd(level, in, out);
  return length < in.size() ? length : 0;
}

bool decompress(Compression method, std::span<const std::byte> in,
                std::span<std::byte> out) noexcept {
  switch (method) {
    case Compression::raw:
      if (in.size() != out.size()) return false;
      if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
      return true;
    case Compression::lz4: {
      if (in.size() > INT32_MAX || out.size() > INT32_MAX) return false;
      const int length = LZ4_decompress_safe(chars(in), chars(out), static_cast<int>(in.size()),
                                             static_cast<int>(out.size()));
      return length >= 0 && static_cast<std::size_t>(length) == out.size();
    }
    case Compression::zstd: {
      ZSTD_DCtx* context = decompression_context();
      if (context == nullptr) return false;
      const std::size_t length =
          ZSTD_decompressDCtx(context, out.data(), out.size(), in.data(), in.size());
      return ZSTD_isError(length) == 0 && length == out.size();
    }
  }
  return false;
}

}  // namespace esker::detail
