#include "fuzz/mutator.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace esker::fuzz {

namespace {

constexpr std::array<std::uint64_t, 18> edge_numbers{0,
                                                     1,
                                                     2,
                                                     3,
                                                     4,
                                                     8,
                                                     64,
                                                     0x7F,
                                                     0xFF,
                                                     0x7FFF,
                                                     0xFFFF,
                                                     0x10000,
                                                     0x7FFFFFFF,
                                                     0x80000000,
                                                     0xFFFFFFFF,
                                                     0x100000000,
                                                     0x7FFFFFFFFFFFFFFF,
                                                     0xFFFFFFFFFFFFFFFF};
constexpr std::size_t page_bytes = 4096;

}  // namespace

Mutator::Mutator(std::vector<Bytes> corpus) : corpus_(std::move(corpus)) {
  for (const Bytes& input : corpus_) {
    std::vector<std::size_t>& marks = marks_.emplace_back();
    for (std::size_t i = 0; i < input.size(); ++i) {
      if (input[i] != 0) marks.push_back(i);
    }
  }
}

Bytes Mutator::input(std::uint64_t seed, std::uint64_t round) {
  std::seed_seq both{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U),
                     static_cast<std::uint32_t>(round), static_cast<std::uint32_t>(round >> 32U)};
  random_.seed(both);
  const std::size_t origin = below(corpus_.size());
  Bytes bytes = corpus_[origin];
  // The first byte tells the target how to treat the rest; the corpus has what makes sense.
  if (!bytes.empty() && below(16) == 0) bytes[0] = static_cast<std::uint8_t>(random_());
  const std::size_t changes = std::size_t{1} << below(4);
  for (std::size_t i = 0; i < changes; ++i) mutate(bytes, origin);
  return bytes;
}

void Mutator::mutate(Bytes& bytes, std::size_t origin) {
  switch (below(12)) {
    case 0:
      resize(bytes);
      break;
    case 1:
    case 2:
      splice(bytes);
      break;
    case 3:
      copy_within(bytes, origin);
      break;
    case 4:
    case 5:
    case 6:
      set_number(bytes, origin);
      break;
    case 7:
      if (!bytes.empty()) bytes[place(bytes, origin)] = static_cast<std::uint8_t>(random_());
      break;
    case 8:  // one more, one less
      if (!bytes.empty()) {
        std::uint8_t& byte = bytes[place(bytes, origin)];
        byte = static_cast<std::uint8_t>(byte + (below(2) == 0 ? 1 : 255));
      }
      break;
    default:
      if (!bytes.empty()) {
        bytes[place(bytes, origin)] ^= static_cast<std::uint8_t>(1U << below(8));
      }
  }
}

std::size_t Mutator::place(const Bytes& bytes, std::size_t origin) {
  const std::vector<std::size_t>& marks = marks_[origin];
  if (marks.empty() || below(8) == 0) return below(bytes.size());
  return std::min(marks[below(marks.size())] + below(12), bytes.size() - 1);
}

void Mutator::set_number(Bytes& bytes, std::size_t origin) {
  const std::size_t where = bytes.empty() ? 0 : place(bytes, origin);
  if (where == 0) return;
  const std::size_t width = std::size_t{1} << below(4);
  // Behind the first byte all numbers of the files are aligned.
  const std::size_t at = 1 + (where - 1) / width * width;
  if (bytes.size() - at < width) return;
  std::uint64_t number = edge_numbers[below(edge_numbers.size())];
  if (below(3) == 0) {
    std::memcpy(&number, bytes.data() + at, width);
    number += below(2) == 0 ? below(300) : 0 - below(300);
  }
  std::memcpy(bytes.data() + at, &number, width);
}

void Mutator::copy_within(Bytes& bytes, std::size_t origin) {
  if (bytes.size() < 2) return;
  const std::size_t from = place(bytes, origin);
  const std::size_t to = place(bytes, origin);
  const std::size_t room = bytes.size() - std::max(from, to);
  std::memmove(bytes.data() + to, bytes.data() + from, 1 + below(std::min<std::size_t>(room, 200)));
}

void Mutator::splice(Bytes& bytes) {
  const Bytes& other = corpus_[below(corpus_.size())];
  const std::size_t shared = std::min(bytes.size(), other.size());
  if (shared < 2) return;
  std::size_t begin = 0;
  std::size_t count = 0;
  if (shared > page_bytes && below(3) != 0) {  // as a power cut mixes two states of a file
    begin = 1 + below(shared / page_bytes) * page_bytes;
    count = (1 + below(4)) * page_bytes;
  } else {
    begin = 1 + below(shared - 1);
    count = 1 + below(shared);
  }
  if (begin >= shared) return;
  std::memcpy(bytes.data() + begin, other.data() + begin, std::min(count, shared - begin));
}

void Mutator::resize(Bytes& bytes) {
  switch (below(4)) {
    case 0:
      bytes.resize(below(bytes.size() + 1));
      break;
    case 1:
      bytes.resize(bytes.size() - std::min(bytes.size(), 1 + below(8)));
      break;
    case 2:
      bytes.resize(bytes.size() + 1 + below(8));
      break;
    default:
      bytes.resize(bytes.size() + 1 + below(2 * page_bytes), static_cast<std::uint8_t>(random_()));
  }
}

}  // namespace esker::fuzz
