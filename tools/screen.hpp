#pragma once

#include <termios.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "output.hpp"

namespace esker::cli {

/// Signals that end a live view, as something to wait for in place of being killed by them: what
/// was changed on the terminal is put back first.
/// Threads: one, before any other is started.
class EndSignals {
 public:
  EndSignals();
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  enum class Woken : std::uint8_t { time, key, resized, ended };
  /// Waits for a key on stdin (if `keys`), another size of the terminal, a signal, or the time.
  [[nodiscard]] Woken wait(std::chrono::milliseconds most, bool keys);
  /// The signal that came, or 0.
  [[nodiscard]] int signal() const noexcept { return signal_; }

 private:
  int fd_ = -1;
  int signal_ = 0;
};

/// The terminal while a live view has it: another screen, no echo, no cursor. What was there comes
/// back when this goes.
class Screen {
 public:
  explicit Screen(Output& out);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  struct Size {
    std::size_t rows = 24;
    std::size_t columns = 80;
  };
  [[nodiscard]] static Size size();
  /// Shows these lines and nothing else. They must fit.
  void show(const std::vector<std::string>& lines);
  /// True when q or the byte of Ctrl-C was typed since; false also at the end of the input.
  [[nodiscard]] bool quit_typed();
  /// False once the input has ended: there is no use in waiting for keys.
  [[nodiscard]] bool has_keys() const noexcept { return keys_; }

 private:
  Output& out_;
  termios before_{};
  bool changed_ = false;
  bool keys_ = true;
};

}  // namespace esker::cli
