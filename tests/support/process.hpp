#pragma once

#include <sys/types.h>
#include <optional>
#include <string>
#include <vector>

namespace esker::test {

using Arguments = std::vector<std::string>;
/// What a child process does; returns its exit status.
using Role = int (*)(const Arguments&);

/// Declared at namespace scope: `const RoleName reader("reader", &run_reader);`
struct RoleName {
  RoleName(const char* name, Role role);
};

int run_role(const std::string& name, const Arguments& arguments);

/// Inside a role: one line to the parent, and one line from it ("" when the parent is gone).
void say(const std::string& line);
std::string listen();

/// Another process that runs a role of this binary. Killed with SIGKILL when it goes out of scope.
class Child {
 public:
  Child(const std::string& role, const Arguments& arguments);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// The next line it said; throws when it ends or says nothing for two minutes.
  std::string hear();
  /// As `hear`, but nothing when it has ended.
  std::optional<std::string> hear_or_end();
  void tell(const std::string& line) const;
  void stop() const;
  void resume() const;
  /// SIGKILL, and wait until it is gone. 137, unless it had ended by itself before.
  int kill();
  /// Waits for its end: the exit status, or 128 + the signal that ended it.
  int finish();

 private:
  void close_pipes() noexcept;

  pid_t pid_ = -1;
  int to_child_ = -1;
  int from_child_ = -1;
  std::string buffer_;
};

/// Runs a role to its end; the exit status, or 128 + the signal.
int run_child(const std::string& role, const Arguments& arguments);

void sleep_ms(unsigned milliseconds);

}  // namespace esker::test
