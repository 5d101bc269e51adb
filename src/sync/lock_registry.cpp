// Invariants
// 1. A registered number is an open descriptor that may hold locks; it is unregistered before it is
//    closed, both under the mutex.
// 2. fork() happens only while no thread holds the mutex, and the child closes every registered
//    number before any other code of the child runs.
#include "sync/lock_registry.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <mutex>

#include "base/error.hpp"

namespace esker::detail::lock_registry {

namespace {

constexpr std::size_t max_open_locks = 1024;
constexpr int no_descriptor = -1;

// Plain statics without destructors: they must outlive every handle, whatever the order of exit.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
std::array<int, max_open_locks> registered = [] {
  std::array<int, max_open_locks> all{};
  all.fill(no_descriptor);
  return all;
}();
pthread_once_t fork_handlers = PTHREAD_ONCE_INIT;

void before_fork() { pthread_mutex_lock(&mutex); }
void after_fork_in_parent() { pthread_mutex_unlock(&mutex); }
void after_fork_in_child() {
  for (int& fd : registered) {
    if (fd != no_descriptor) close(fd);
    fd = no_descriptor;
  }
  pthread_mutex_unlock(&mutex);
}

void install_fork_handlers() {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

bool remember(int fd) noexcept {
  for (int& entry : registered) {
    if (entry == no_descriptor) {
      entry = fd;
      return true;
    }
  }
  return false;
}

}  // namespace

Guard::Guard() noexcept {
  pthread_once(&fork_handlers, install_fork_handlers);
  pthread_mutex_lock(&mutex);
}

Guard::~Guard() { pthread_mutex_unlock(&mutex); }

Result<File> open_lock_file(const Directory& store, Sharing sharing, bool create) {
  const Guard guard;
  auto file = store.open_file(file_names::lock, O_RDWR, sharing);
  if (!file && create && file.error().os_error == ENOENT) {
    file = store.create_file(file_names::lock, sharing);
    if (!file && file.error().os_error == EEXIST) {
      file = store.open_file(file_names::lock, O_RDWR, sharing);
    }
  }
  if (!file) return file;
  if (auto done = adopt(*file, guard); !done) return tl::make_unexpected(std::move(done).error());
  return file;
}

Result<void> adopt(const File& file, const Guard&) {
  if (remember(file.fd())) return {};
  return fail(Errc::busy, file.path() + ": more than " + std::to_string(max_open_locks) +
                              " lock operations at once in this process");
}

void close_lock_file(File& file, const Guard&) noexcept {
  for (int& entry : registered) {
    if (entry == file.fd()) entry = no_descriptor;
  }
  file.reset();
}

}  // namespace esker::detail::lock_registry
