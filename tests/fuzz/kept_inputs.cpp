#include "fuzz/kept_inputs.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace esker::fuzz {

namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 24U;
/// Shorter runs of zeros cost less within the bytes than as a piece of their own.
constexpr std::ptrdiff_t shortest_run = 16;

void put(Bytes& out, std::size_t number) {
  const auto word = static_cast<std::uint32_t>(number);
  std::uint8_t bytes[sizeof word];
  std::memcpy(bytes, &word, sizeof word);
  out.insert(out.end(), std::begin(bytes), std::end(bytes));
}

std::size_t take(const Bytes& packed, std::size_t& at) {
  std::uint32_t word = 0;
  if (packed.size() - at < sizeof word) throw std::runtime_error("a kept input is cut off");
  std::memcpy(&word, packed.data() + at, sizeof word);
  at += sizeof word;
  return word;
}

}  // namespace

Bytes pack(const Bytes& input) {
  const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
  Bytes out;
  for (auto at = input.begin(); at != input.end();) {
    const auto begin = std::find_if_not(at, input.end(), is_zero);
    auto end = begin;
    for (auto next = begin; next != input.end();) {
      end = std::find_if(next, input.end(), is_zero);
      next = std::find_if_not(end, input.end(), is_zero);
      if (next - end >= shortest_run) break;
    }
    put(out, static_cast<std::size_t>(begin - at));
    put(out, static_cast<std::size_t>(end - begin));
    out.insert(out.end(), begin, end);
    at = end;
  }
  return out;
}

Bytes unpack(const Bytes& packed) {
  Bytes input;
  for (std::size_t at = 0; at < packed.size();) {
    const std::size_t zeros = take(packed, at);
    const std::size_t bytes = take(packed, at);
    if (bytes > packed.size() - at || zeros > most_bytes || input.size() + zeros > most_bytes) {
      throw std::runtime_error("a kept input does not add up");
    }
    input.insert(input.end(), zeros, 0);
    const auto* begin = packed.data() + at;
    input.insert(input.end(), begin, begin + bytes);
    at += bytes;
  }
  return input;
}

std::vector<std::string> files_in(const std::string& directory) {
  std::vector<std::string> files;
  if (directory.empty()) return files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace esker::fuzz
