#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <esker/geometry.hpp>
#include <esker/layer_cache.hpp>
#include <span>
#include <vector>

namespace esker::test {

/// Small rows of 24 bytes, so that a test can hold many.
inline LayerShape small_layer(std::uint32_t max_tokens = 300) {
  LayerShape shape;
  shape.max_tokens = max_tokens;
  shape.heads = 3;
  shape.head_dim = 4;
  shape.dtype = "f16";
  return shape;
}

/// What a row holds: a function of the token, of the plane and of how often it was written.
inline void fill_layer_row(std::uint32_t token, Plane plane, std::uint64_t version,
                           std::span<std::byte> out) {
  std::uint64_t state = version * 0x9E37'79B9'7F4A'7C15U + token * 2U + (plane == Plane::value);
  for (std::byte& byte : out) {
    state = state * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    byte = static_cast<std::byte>(state >> 56U);
  }
  // Readers learn from the row itself which version they look at.
  if (out.size() >= sizeof version) std::memcpy(out.data(), &version, sizeof version);
}

inline std::vector<std::byte> layer_row(std::uint32_t token, Plane plane, std::uint64_t version,
                                        std::size_t bytes) {
  std::vector<std::byte> row(bytes);
  fill_layer_row(token, plane, version, row);
  return row;
}

/// The rows of some tokens, ready for `write_batch`.
class LayerBatch {
 public:
  explicit LayerBatch(std::size_t row_bytes) : row_bytes_(row_bytes) {}

  void add(std::uint32_t token, std::uint64_t version) {
    tokens_.push_back(token);
    for (const Plane plane : {Plane::key, Plane::value}) {
      const std::size_t at = rows_.size();
      rows_.resize(at + row_bytes_);
      fill_layer_row(token, plane, version, std::span(rows_).subspan(at));
    }
  }
  /// Valid until the next `add`.
  [[nodiscard]] std::vector<LayerEntry> entries() const {
    std::vector<LayerEntry> list;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::span<const std::byte> both = std::span(rows_).subspan(2 * i * row_bytes_);
      list.push_back({tokens_[i], both.first(row_bytes_), both.subspan(row_bytes_, row_bytes_)});
    }
    return list;
  }

 private:
  std::size_t row_bytes_;
  std::vector<std::uint32_t> tokens_;
  std::vector<std::byte> rows_;
};

inline bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// The version that all bytes of this row agree on, or UINT64_MAX.
inline std::uint64_t version_of(std::uint32_t token, Plane plane, std::span<const std::byte> row) {
  std::uint64_t version = 0;
  if (row.size() < sizeof version) return UINT64_MAX;
  std::memcpy(&version, row.data(), sizeof version);
  return equal(layer_row(token, plane, version, row.size()), row) ? version : UINT64_MAX;
}

}  // namespace esker::test
