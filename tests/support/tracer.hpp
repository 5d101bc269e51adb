#pragma once

#include <sys/types.h>
#include <cstdint>
#include <string>

#include "support/process.hpp"

namespace esker::test {

/// Inside a role: what lies between these is traced. Each is one harmless system call of its own.
void mark_begin();
void mark_end();

/// A role under ptrace: runs from system call to system call.
class Tracee {
 public:
  Tracee(const std::string& role, const Arguments& arguments);
  Tracee(const Tracee&) = delete;
  Tracee& operator=(const Tracee&) = delete;
  ~Tracee();

  /// Runs on to just before or just after the next system call between the marks, and leaves it
  /// stopped there; false when `mark_end` was reached or the role has ended.
  bool step();
  /// Like `step`, `stops` times.
  bool run(std::uint64_t stops);
  /// Runs `count` single instructions behind `mark_begin`; how many there were before its end.
  std::uint64_t run_instructions(std::uint64_t count);
  void kill();
  /// Lets it run to its end, untraced; the exit status, or 128 + the signal.
  int finish();

 private:
  bool next_stop();
  bool begin();

  pid_t pid_ = -1;
  bool begun_ = false;
};

/// System calls that a role makes between its marks.
[[nodiscard]] std::uint64_t count_system_calls(const std::string& role, const Arguments& arguments);

}  // namespace esker::test
