#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <esker/geometry.hpp>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace esker::detail {

class Core;

/// Brings cold blocks back in the background. The thread starts with the first prompt and ends with
/// the handle. Safe for several threads.
class Prefetcher {
 public:
  explicit Prefetcher(Core& core) noexcept : core_(core) {}
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  /// Waits for the chunk in hand. Not in a forked child, which has no such thread.
  ~Prefetcher();

  /// False when too many wait already, or there is no thread to be had.
  bool add(Tokens tokens, std::string_view name_space);

 private:
  struct Prompt {
    std::vector<std::int32_t> tokens;
    std::string name_space;
  };
  void start();
  void work();

  Core& core_;
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::deque<Prompt> waiting_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace esker::detail
