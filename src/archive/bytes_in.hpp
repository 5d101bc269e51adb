#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <esker/result.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace esker::detail {

inline std::string text_of(std::span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// Takes a payload apart, never beyond its end.
class BytesIn {
 public:
  explicit BytesIn(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  template <class T>
  [[nodiscard]] bool take(T& out) noexcept {
    if (left() < sizeof out) return false;
    std::memcpy(&out, bytes_.data() + position_, sizeof out);
    position_ += sizeof out;
    return true;
  }
  [[nodiscard]] std::optional<std::span<const std::byte>> bytes(std::uint64_t count) noexcept {
    if (left() < count) return std::nullopt;
    const auto taken = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += taken.size();
    return taken;
  }
  /// Zeros to a multiple of `alignment`; false when there is something else, or nothing.
  [[nodiscard]] bool padding(std::size_t alignment) noexcept {
    const auto pad = bytes(align_up(position_, alignment) - position_);
    return pad && all_zero(*pad);
  }
  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - position_; }
  [[nodiscard]] std::size_t position() const noexcept { return position_; }
  [[nodiscard]] Result<void> at_end(std::string_view where) const {
    if (left() == 0) return {};
    return fail_field(Errc::corrupt, where, "payload_bytes", std::to_string(bytes_.size()),
                      std::to_string(position_));
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

/// Puts one together.
class BytesOut {
 public:
  void append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <class T>
  void put(const T& value) {
    append(std::as_bytes(std::span(&value, 1)));
  }
  void text(std::string_view text) { append(std::as_bytes(std::span(text))); }
  void pad(std::size_t alignment) {
    bytes_.resize(static_cast<std::size_t>(align_up(bytes_.size(), alignment)));
  }
  [[nodiscard]] std::vector<std::byte> bytes() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace esker::detail
