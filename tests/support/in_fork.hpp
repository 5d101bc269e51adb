#pragma once

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

namespace esker::test {

/// Runs `body` in a forked child; its return value is the exit status, 128 + N a signal.
template <class Body>
int in_fork(Body&& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGTERM}) std::signal(signal, SIG_DFL);
    int status = 99;
    try {
      status = body();
    } catch (...) {
      status = 98;
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace esker::test
