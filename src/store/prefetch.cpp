// Invariants
// 1. The thread uses the Core that owns it and never owns it in turn: the Core's destructor joins.
// 2. The thread takes no signal: handlers of the program run on its own threads.
#include "store/prefetch.hpp"

#include <pthread.h>
#include <signal.h>
#include <system_error>

#include "base/guarded.hpp"
#include "store/thaw.hpp"

namespace esker::detail {

namespace {

constexpr std::size_t most_waiting = 64;

/// A new thread inherits the mask of the one that starts it.
class NoSignals {
 public:
  NoSignals() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard guard(mutex_);
    stop_.store(true, std::memory_order_relaxed);
  }
  wakes_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Prefetcher::start() {
  const NoSignals quiet;
  thread_ = std::thread([this] { work(); });
}

bool Prefetcher::add(Tokens tokens, std::string_view name_space) {
  const std::lock_guard guard(mutex_);
  if (waiting_.size() >= most_waiting) return false;
  waiting_.push_back({{tokens.begin(), tokens.end()}, std::string(name_space)});
  try {
    if (!thread_.joinable()) start();
  } catch (const std::system_error&) {
    waiting_.pop_back();
    return false;
  }
  wakes_.notify_one();
  return true;
}

void Prefetcher::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wakes_.wait(lock,
                [this] { return stop_.load(std::memory_order_relaxed) || !waiting_.empty(); });
    if (stop_.load(std::memory_order_relaxed)) return;
    const Prompt prompt = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    auto done = guarded([&] { return thaw(core_, prompt.tokens, prompt.name_space, &stop_); });
    static_cast<void>(done);  // whoever looks the prompt up sees what is there
    lock.lock();
  }
}

}  // namespace esker::detail
