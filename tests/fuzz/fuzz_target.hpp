#pragma once

#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

/// What a fuzz target and whoever drives it share: libFuzzer calls the first function alone,
/// fuzz_main.cpp calls all three.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace esker::fuzz {

using Bytes = std::vector<std::uint8_t>;

/// Inputs that are right: where the mutations start from.
[[nodiscard]] std::vector<Bytes> corpus();

/// How many inputs were accepted so far. Every input of the corpus must be, or the target would
/// only test how it refuses.
[[nodiscard]] std::uint64_t accepted();

/// The one check of a target besides "it does not crash and does not hang".
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: broken promise: %s\n", promise);
  std::abort();
}

/// A directory in memory that goes away with the process.
class Scratch {
 public:
  Scratch() {
    std::string name = "/dev/shm/esker-fuzz-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no directory in /dev/shm");
    path_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace esker::fuzz
