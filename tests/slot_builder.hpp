#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace esker::test {

/// Spells llama.cpp sequence files by hand, good and bad ones. Shares no code with tools/llama/, so
/// that a mistake there is not repeated here.
struct SlotBuilder {
  std::uint32_t version = 4;
  std::uint32_t streams = 1;
  std::uint32_t stream = 0;  ///< that holds the cells
  bool packed = true;
  bool transposed = false;
  bool values = true;
  bool extended = false;  ///< cells of 24 bytes
  std::uint32_t layers = 3;
  std::uint32_t key_type = 1;
  std::uint32_t value_type = 1;
  std::uint32_t key_row = 64;
  std::uint32_t value_row = 48;
  std::uint32_t element = 2;  ///< bytes, for transposed values
  std::uint32_t key_rotation = 0;
  std::uint32_t value_rotation = 0;
  std::vector<std::int32_t> tokens;
  std::vector<std::uint32_t> positions;  ///< of the cells in file order; empty: 0…n-1
  std::string tail;

  explicit SlotBuilder(std::uint32_t count = 40) {
    for (std::uint32_t i = 0; i < count; ++i)
      tokens.push_back(static_cast<std::int32_t>(i * 7 + 3));
  }

  /// What byte `i` of a row must be: a function of all tokens so far, of layer, plane and position.
  static std::uint8_t row_byte(std::uint64_t text, std::uint32_t layer, bool value,
                               std::uint32_t position, std::uint32_t i) {
    std::uint64_t x = text ^ (std::uint64_t{layer} << 40) ^ (std::uint64_t{value} << 39) ^
                      (std::uint64_t{position} << 16) ^ i;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return static_cast<std::uint8_t>(x >> 56);
  }

  /// One number for the tokens up to and including each position.
  [[nodiscard]] std::vector<std::uint64_t> texts() const {
    std::vector<std::uint64_t> list;
    std::uint64_t text = 1;
    for (const std::int32_t token : tokens) {
      text = text * 0x9E3779B97F4A7C15U + static_cast<std::uint32_t>(token);
      list.push_back(text);
    }
    return list;
  }

  /// The rows of one plane in order of position: what any reader must deliver.
  [[nodiscard]] std::string rows(std::uint32_t layer, bool value) const {
    const std::uint32_t bytes = value ? value_row : key_row;
    const auto text = texts();
    std::string out;
    out.reserve(tokens.size() * bytes);
    for (std::uint32_t p = 0; p < tokens.size(); ++p) {
      for (std::uint32_t i = 0; i < bytes; ++i) {
        out += static_cast<char>(row_byte(text[p], layer, value, p, i));
      }
    }
    return out;
  }

  [[nodiscard]] std::string build() const {
    std::string out;
    put(out, 0x67677371U);
    put(out, version);
    put_tokens(out);
    put_cells(out);
    // Each stream is cells and rows; so what stands behind the rows is the streams after it.
    put(out, transposed ? 1U : 0U);
    put(out, layers);
    if (version >= 4) {
      put(out, key_rotation);
      put(out, value_rotation);
    }
    for (std::uint32_t layer = 0; layer < layers; ++layer) put_rows(out, layer, false);
    for (std::uint32_t layer = 0; layer < layers && values; ++layer) {
      if (transposed) {
        put_channels(out, layer);
      } else {
        put_rows(out, layer, true);
      }
    }
    for (std::uint32_t s = stream + 1; s < streams; ++s) put(out, 0U);
    return out + tail;
  }

  template <class T>
  static void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  /// The bytes of some words, for tails and patches.
  static std::string words(const std::vector<std::uint32_t>& list) {
    std::string out;
    for (const std::uint32_t word : list) put(out, word);
    return out;
  }

  [[nodiscard]] std::size_t memory_offset() const {
    return 12 + 4 * (tokens.size() + (packed ? 4U : 0U));
  }
  [[nodiscard]] std::size_t cells_offset() const { return memory_offset() + 8 + 4 * stream; }
  [[nodiscard]] std::size_t layout_offset() const {
    return cells_offset() + (extended ? 24U : 12U) * tokens.size();
  }

 private:
  [[nodiscard]] std::vector<std::uint32_t> order() const {
    if (!positions.empty()) return positions;
    std::vector<std::uint32_t> list(tokens.size());
    std::iota(list.begin(), list.end(), 0U);
    return list;
  }

  void put_tokens(std::string& out) const {
    const auto count = static_cast<std::uint32_t>(tokens.size());
    put(out, packed ? count + 4 : count);
    if (packed) out += words({UINT32_MAX, 1, count});
    for (const std::int32_t token : tokens) put(out, token);
    if (packed) put(out, 0U);
  }

  void put_cells(std::string& out) const {
    put(out, streams);
    for (std::uint32_t s = 0; s < stream; ++s) put(out, 0U);
    put(out, static_cast<std::uint32_t>(tokens.size()));
    for (const std::uint32_t position : order()) {
      out += words({position, 1});
      // M-RoPE keeps the text position twice more; then comes the token.
      if (extended) out += words({position, position, 500});
      put(out, 2U);
    }
  }

  void put_rows(std::string& out, std::uint32_t layer, bool value) const {
    const std::uint32_t bytes = value ? value_row : key_row;
    put(out, value ? value_type : key_type);
    put(out, std::uint64_t{bytes});
    const std::string sorted = rows(layer, value);
    for (const std::uint32_t position : order()) {
      out += sorted.substr(std::size_t{position} * bytes, bytes);
    }
  }

  void put_channels(std::string& out, std::uint32_t layer) const {
    out += words({value_type, element, value_row / element});
    const std::string sorted = rows(layer, true);
    const std::vector<std::uint32_t> list = order();
    for (std::uint32_t channel = 0; channel < value_row / element; ++channel) {
      for (const std::uint32_t position : list) {
        out += sorted.substr(std::size_t{position} * value_row + channel * element, element);
      }
    }
  }
};

}  // namespace esker::test
