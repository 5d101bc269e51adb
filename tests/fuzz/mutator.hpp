#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "fuzz/fuzz_target.hpp"

namespace esker::fuzz {

/// Changes valid inputs a little. Each input depends on the seed and the round alone, so that any
/// one can be made again.
class Mutator {
 public:
  explicit Mutator(std::vector<Bytes> corpus);

  [[nodiscard]] Bytes input(std::uint64_t seed, std::uint64_t round);
  [[nodiscard]] const std::vector<Bytes>& corpus() const noexcept { return corpus_; }

 private:
  void mutate(Bytes& bytes, std::size_t origin);
  void set_number(Bytes& bytes, std::size_t origin);
  void copy_within(Bytes& bytes, std::size_t origin);
  void splice(Bytes& bytes);
  void resize(Bytes& bytes);
  /// A place in the input: mostly beside bytes that mean something, since files are full of zeros.
  [[nodiscard]] std::size_t place(const Bytes& bytes, std::size_t origin);
  [[nodiscard]] std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  std::vector<Bytes> corpus_;
  std::vector<std::vector<std::size_t>> marks_;  ///< per input: offsets of bytes that are not zero
  std::mt19937_64 random_;
};

}  // namespace esker::fuzz
