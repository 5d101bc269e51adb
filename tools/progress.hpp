#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <esker/options.hpp>
#include <string>
#include <utility>

#include "output.hpp"

namespace esker::cli {

/// Total of an operation that cannot know it, such as reading from a pipe; 0 means the same.
inline constexpr std::uint64_t unknown_total = UINT64_MAX;

/// One line on the terminal, at most five times a second, wiped at the end: how much is done, how
/// fast it goes on now, and how long the rest takes at this rate.
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
  struct Mark {
    Clock::time_point time;
    std::uint64_t bytes = 0;
  };

  /// Bytes per second over the last seconds, so that it follows a disk that slows down.
  [[nodiscard]] double rate(Clock::time_point now, std::uint64_t done_bytes);

  Output& out_;
  std::string verb_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point shown_ = started_;
  std::deque<Mark> marks_{Mark{started_}};  ///< the oldest is some seconds old
  bool visible_ = false;
};

/// "verified 1.0 GiB of 4.0 GiB (25.0 %), 512.0 MiB/s, 6 s left"; without a total what is known.
[[nodiscard]] std::string progress_text(std::string_view verb, std::uint64_t done_bytes,
                                        std::uint64_t total_bytes, double bytes_per_s);

}  // namespace esker::cli
