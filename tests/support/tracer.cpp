#include "support/tracer.hpp"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace esker::test {

namespace {

constexpr long begin_mark = 0x7e571;
constexpr long end_mark = 0x7e572;
constexpr int syscall_stop = SIGTRAP | 0x80;

[[noreturn]] void become_traced(const std::string& role, const Arguments& arguments) {
  ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  ::raise(SIGSTOP);
  const int nowhere = ::open("/dev/null", O_RDWR);
  ::dup2(nowhere, STDIN_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
  if (nowhere > 2) ::close(nowhere);
  std::vector<std::string> words = {"/proc/self/exe", "--role", role};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv("/proc/self/exe", argv.data());
  ::_exit(127);
}

__ptrace_syscall_info info_of(pid_t pid) {
  __ptrace_syscall_info info{};
  ::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
  return info;
}

bool is_mark(const __ptrace_syscall_info& info, long mark) {
  return info.op == PTRACE_SYSCALL_INFO_ENTRY &&
         info.entry.nr == static_cast<std::uint64_t>(SYS_getpgid) &&
         info.entry.args[0] == static_cast<std::uint64_t>(mark);
}

}  // namespace

void mark_begin() { ::syscall(SYS_getpgid, begin_mark); }
void mark_end() { ::syscall(SYS_getpgid, end_mark); }

Tracee::Tracee(const std::string& role, const Arguments& arguments) {
  pid_ = ::fork();
  if (pid_ == 0) become_traced(role, arguments);
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_ || !WIFSTOPPED(status)) {
    throw std::runtime_error("cannot trace a child process");
  }
  if (::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD) != 0) {
    throw std::runtime_error(std::string("ptrace: ") + std::strerror(errno));
  }
}

Tracee::~Tracee() {
  if (pid_ > 0) kill();
}

bool Tracee::next_stop() {
  int signal = 0;
  for (;;) {
    if (::ptrace(PTRACE_SYSCALL, pid_, nullptr, static_cast<long>(signal)) != 0) return false;
    int status = 0;
    if (::waitpid(pid_, &status, 0) != pid_) return false;
    if (!WIFSTOPPED(status)) {
      pid_ = -1;
      return false;
    }
    if (WSTOPSIG(status) == syscall_stop) return true;
    signal = WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
  }
}

bool Tracee::begin() {
  while (!begun_) {
    if (!next_stop()) return false;
    begun_ = is_mark(info_of(pid_), begin_mark);
    if (begun_ && !next_stop()) return false;
  }
  return true;
}

bool Tracee::step() { return begin() && next_stop() && !is_mark(info_of(pid_), end_mark); }

std::uint64_t Tracee::run_instructions(std::uint64_t count) {
  if (!begin()) return 0;
  for (std::uint64_t done = 0; done < count; ++done) {
    int status = 0;
    if (::ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr) != 0) return done;
    if (::waitpid(pid_, &status, 0) != pid_) return done;
    if (!WIFSTOPPED(status)) {
      pid_ = -1;
      return done;
    }
  }
  return count;
}

bool Tracee::run(std::uint64_t stops) {
  for (std::uint64_t i = 0; i < stops; ++i) {
    if (!step()) return false;
  }
  return true;
}

void Tracee::kill() {
  ::kill(pid_, SIGKILL);
  int status = 0;
  do {
    if (::waitpid(pid_, &status, 0) < 0 && errno != EINTR) break;
  } while (!WIFSIGNALED(status) && !WIFEXITED(status));
  pid_ = -1;
}

int Tracee::finish() {
  ::ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::uint64_t count_system_calls(const std::string& role, const Arguments& arguments) {
  Tracee tracee(role, arguments);
  std::uint64_t stops = 0;
  while (tracee.step()) ++stops;
  if (tracee.finish() != 0) throw std::runtime_error("the role " + role + " failed while traced");
  return stops / 2;
}

}  // namespace esker::test
