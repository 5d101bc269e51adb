#pragma once

#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <string>

/// A directory below `base` that goes when the program ends.
class Scratch {
 public:
  explicit Scratch(const std::string& base)
      : path_(base + "/esker-bench-" + std::to_string(getpid())) {
    std::filesystem::create_directories(path_);
  }
  /// Below $TMPDIR, else below `base`.
  [[nodiscard]] static Scratch below_tmpdir_or(const std::string& base) {
    const char* set = std::getenv("TMPDIR");
    return Scratch(set == nullptr ? base : set);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};
