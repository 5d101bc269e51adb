#pragma once

#include <chrono>
#include <cstdint>
#include <esker/options.hpp>
#include <string>

#include "output.hpp"

namespace esker::cli {

/// One line on the terminal, at most five times a second, wiped at the end.
class ProgressLine {
 public:
  ProgressLine(Output& out, std::string verb) : out_(out), verb_(std::move(verb)) {}
  ~ProgressLine() { done(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// What long operations of the library call. Borrows from this object.
  [[nodiscard]] Progress callback();
  void update(std::uint64_t done_bytes, std::uint64_t total_bytes);
  void done();
  [[nodiscard]] double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  Output& out_;
  std::string verb_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point shown_ = started_;
  bool visible_ = false;
};

}  // namespace esker::cli
