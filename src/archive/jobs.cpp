// Invariants
// 1. No thread outlives the call.
// 2. No exception leaves a worker: want of memory becomes a failure like any other.
#include "archive/jobs.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/guarded.hpp"

namespace esker::detail {

Result<void> run_workers(std::uint32_t threads,
                         const std::function<Result<void>(std::size_t)>& work) {
  if (threads <= 1) return work(0);
  std::mutex mutex;
  std::optional<Error> first;
  const auto run = [&](std::size_t worker) {
    auto done = guarded([&] { return work(worker); });
    if (done) return;
    const std::lock_guard lock(mutex);
    if (!first) first = std::move(done).error();
  };
  {
    std::vector<std::jthread> others;
    others.reserve(threads - 1);
    try {
      for (std::size_t worker = 1; worker < threads; ++worker) others.emplace_back(run, worker);
    } catch (const std::system_error&) {
      // Those that run, this one at least, do the work.
    }
    run(0);
  }
  if (first) return tl::make_unexpected(std::move(*first));
  return {};
}

Result<void> run_jobs(std::size_t count, std::uint32_t threads,
                      const std::function<Result<void>(std::size_t, std::size_t)>& job) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(threads, count));
  return run_workers(most, [&](std::size_t worker) -> Result<void> {
    while (!failed.load(std::memory_order_relaxed)) {
      const std::size_t number = next.fetch_add(1, std::memory_order_relaxed);
      if (number >= count) break;
      if (auto done = job(number, worker); !done) {
        failed.store(true, std::memory_order_relaxed);
        return done;
      }
    }
    return {};
  });
}

}  // namespace esker::detail
