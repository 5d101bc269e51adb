#include "support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>

namespace esker::test {

namespace {

constexpr int silence_limit_ms = 120'000;

std::map<std::string, Role>& roles() {
  static std::map<std::string, Role> all;
  return all;
}

[[noreturn]] void become(const std::string& role, const Arguments& arguments, int in, int out) {
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  std::vector<std::string> words = {"/proc/self/exe", "--role", role};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv("/proc/self/exe", argv.data());
  ::_exit(127);
}

int decode(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

RoleName::RoleName(const char* name, Role role) { roles()[name] = role; }

int run_role(const std::string& name, const Arguments& arguments) {
  const auto found = roles().find(name);
  if (found == roles().end()) {
    std::cerr << "no role is called " << name << '\n';
    return 126;
  }
  std::signal(SIGPIPE, SIG_DFL);
  try {
    return found->second(arguments);
  } catch (const std::exception& error) {
    std::cerr << "role " << name << ": " << error.what() << '\n';
    return 70;
  }
}

void say(const std::string& line) { std::cout << line << std::endl; }

std::string listen() {
  std::string line;
  std::getline(std::cin, line);
  return line;
}

Child::Child(const std::string& role, const Arguments& arguments) {
  int down[2];
  int up[2];
  if (::pipe2(down, O_CLOEXEC) != 0 || ::pipe2(up, O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe for a child process");
  }
  pid_ = ::fork();
  if (pid_ == 0) become(role, arguments, down[0], up[1]);
  ::close(down[0]);
  ::close(up[1]);
  to_child_ = down[1];
  from_child_ = up[0];
  if (pid_ < 0) throw std::runtime_error("fork failed");
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      to_child_(std::exchange(other.to_child_, -1)),
      from_child_(std::exchange(other.from_child_, -1)),
      buffer_(std::move(other.buffer_)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(to_child_, other.to_child_);
  std::swap(from_child_, other.from_child_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

Child::~Child() {
  if (pid_ > 0) kill();
  close_pipes();
}

void Child::close_pipes() noexcept {
  for (int* end : {&to_child_, &from_child_}) {
    if (*end >= 0) ::close(*end);
    *end = -1;
  }
}

std::optional<std::string> Child::hear_or_end() {
  for (;;) {
    const std::size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd ready{from_child_, POLLIN, 0};
    const int polled = ::poll(&ready, 1, silence_limit_ms);
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0) throw std::runtime_error("a child process hangs: no word for two minutes");
    char bytes[4096];
    const ssize_t count = ::read(from_child_, bytes, sizeof bytes);
    if (count <= 0) return std::nullopt;
    buffer_.append(bytes, static_cast<std::size_t>(count));
  }
}

std::string Child::hear() {
  std::optional<std::string> line = hear_or_end();
  if (!line) throw std::runtime_error("a child process ended before it answered");
  return *line;
}

void Child::tell(const std::string& line) const {
  const std::string text = line + '\n';
  if (::write(to_child_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error("a child process does not listen");
  }
}

void Child::stop() const {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  if (::waitpid(pid_, &status, WUNTRACED) != pid_ || !WIFSTOPPED(status)) {
    throw std::runtime_error("a child process could not be stopped");
  }
}

void Child::resume() const { ::kill(pid_, SIGCONT); }

int Child::kill() {
  ::kill(pid_, SIGKILL);
  return finish();
}

int Child::finish() {
  int status = 0;
  pid_t done = -1;
  do {
    done = ::waitpid(pid_, &status, 0);
  } while (done < 0 && errno == EINTR);
  if (done != pid_) throw std::runtime_error("a child process is not there to be waited for");
  pid_ = -1;
  return decode(status);
}

int run_child(const std::string& role, const Arguments& arguments) {
  return Child(role, arguments).finish();
}

void sleep_ms(unsigned milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

}  // namespace esker::test
