#include "llama/field_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

namespace esker::cli::llama {

namespace {

static_assert(std::endian::native == std::endian::little, "sequence files are little-endian");

constexpr std::uint64_t buffer_bytes = 64 * 1024;
constexpr std::string_view cut_off = "the file is cut off or damaged: save it again";

}  // namespace

bool FieldReader::fill(std::size_t bytes) {
  const bool inside =
      offset_ >= buffer_offset_ && offset_ + bytes <= buffer_offset_ + buffer_.size();
  if (inside) return true;
  buffer_.resize(static_cast<std::size_t>(std::min(buffer_bytes, remaining())));
  buffer_offset_ = offset_;
  const auto got = file_->read(offset_, buffer_);
  if (!got) {
    buffer_.clear();
    error_ = got.error();
  }
  return got.has_value();
}

template <class T>
T FieldReader::number(std::string_view field) {
  if (!ok()) return 0;
  field_offset_ = offset_;
  if (remaining() < sizeof(T)) {
    refuse(Errc::corrupt, fmt::format("{} at byte {}: needs {} bytes, found {}; {}", field, offset_,
                                      sizeof(T), remaining(), cut_off));
    return 0;
  }
  if (!fill(sizeof(T))) return 0;
  T value = 0;
  std::memcpy(&value, buffer_.data() + (offset_ - buffer_offset_), sizeof(T));
  offset_ += sizeof(T);
  return value;
}

std::uint32_t FieldReader::u32(std::string_view field) { return number<std::uint32_t>(field); }
std::int32_t FieldReader::i32(std::string_view field) { return number<std::int32_t>(field); }
std::uint64_t FieldReader::u64(std::string_view field) { return number<std::uint64_t>(field); }

std::string FieldReader::text(std::uint32_t bytes, std::string_view field) {
  const std::uint64_t start = offset_;
  skip(bytes, 1, field);
  if (!ok()) return {};
  field_offset_ = start;
  std::string read(bytes, '\0');
  if (auto got = file_->read(start, std::as_writable_bytes(std::span(read))); !got) {
    error_ = std::move(got).error();
    return {};
  }
  return read;
}

void FieldReader::skip(std::uint64_t count, std::uint64_t item_bytes, std::string_view field) {
  if (!ok()) return;
  // Divided, because the product of two numbers from the file may not fit.
  if (item_bytes > 0 && count > remaining() / item_bytes) {
    refuse(Errc::corrupt,
           fmt::format("{} at byte {}: {} items of {} bytes do not fit into the {} bytes left; {}",
                       field, offset_, count, item_bytes, remaining(), cut_off));
    return;
  }
  offset_ += count * item_bytes;
}

void FieldReader::reject(std::string_view field, std::string_view found,
                         std::string_view expected) {
  refuse(Errc::corrupt, fmt::format("{} at byte {}: found {}, expected {}", field, field_offset_,
                                    found, expected));
}

void FieldReader::reject(std::string_view field, std::uint64_t found, std::string_view expected) {
  reject(field, std::to_string(found), expected);
}

void FieldReader::refuse(Errc code, std::string_view why) {
  if (ok()) error_ = Error{code, 0, fmt::format("{}: {}", file_->name(), why)};
}

}  // namespace esker::cli::llama
