#include "screen.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace esker::cli {

namespace {

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) sigaddset(&set, signal);
  return set;
}

constexpr std::string_view enter = "\x1b[?1049h\x1b[?25l\x1b[2J";
constexpr std::string_view leave = "\x1b[0m\x1b[?25h\x1b[?1049l";

}  // namespace

EndSignals::EndSignals() {
  const sigset_t set = watched();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

EndSignals::~EndSignals() {
  if (fd_ >= 0) close(fd_);
  const sigset_t set = watched();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

EndSignals::Woken EndSignals::wait(std::chrono::milliseconds most, bool keys) {
  pollfd fds[] = {{fd_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  const int ready = poll(fds, keys ? 2 : 1, static_cast<int>(most.count()));
  if (ready <= 0) return Woken::time;
  if (fds[0].revents != 0) {
    signalfd_siginfo info{};
    if (read(fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return Woken::time;
    if (info.ssi_signo == SIGWINCH) return Woken::resized;
    signal_ = static_cast<int>(info.ssi_signo);
    return Woken::ended;
  }
  return Woken::key;
}

Screen::Screen(Output& out) : out_(out) {
  if (tcgetattr(STDIN_FILENO, &before_) == 0) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    // Stopped, it would leave the shell on our screen.
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    changed_ = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
  } else {
    keys_ = false;
  }
  out_.text(enter);
  out_.flush();
}

Screen::~Screen() {
  out_.text(leave);
  out_.flush();
  // What was typed meanwhile was meant for us, not for the shell.
  if (changed_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
}

Screen::Size Screen::size() {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0) {
    return {};
  }
  return {window.ws_row, window.ws_col};
}

void Screen::show(const std::vector<std::string>& lines) {
  // One write, and no wiping before it: nothing flickers.
  std::string text = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // Wiped before the text: behind a full line the cursor still stands on its last letter.
    text += i + 1 < lines.size() ? "\x1b[K" : "\x1b[J";
    text += lines[i] + "\x1b[0m";
    if (i + 1 < lines.size()) text += "\r\n";
  }
  out_.text(text);
  out_.flush();
}

bool Screen::quit_typed() {
  char typed[64];
  const ssize_t count = read(STDIN_FILENO, typed, sizeof typed);
  // Without VMIN an end of the input and "nothing typed" look alike, but poll said that there is.
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) keys_ = false;
  for (ssize_t i = 0; i < count; ++i) {
    if (typed[i] == 'q' || typed[i] == 'Q' || typed[i] == '\x03') return true;
  }
  return false;
}

}  // namespace esker::cli
