#include "llama/row_placer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace esker::cli::llama {

namespace {

constexpr unsigned max_threads = 4;  // more would only wait for the memory

/// Places are handed out one by one, so that all threads end at the same time.
class RowPlacer {
 public:
  RowPlacer(const Prefix& prefix, std::uint32_t tokens, std::span<const RowPlace> places,
            const OutputFile& file)
      : prefix_(prefix), tokens_(tokens), places_(places), file_(file) {}

  void work(const Progress& progress) {
    for (std::size_t i = next_++; i < places_.size() && !failed_; i = next_++) {
      if (auto done = place(places_[i]); !done) note(std::move(done).error());
      if (progress) progress(std::min(next_.load(), places_.size()), places_.size());
    }
  }

  Result<void> result() {
    if (error_) return tl::unexpected(std::move(*error_));
    return {};
  }

 private:
  Result<void> place(const RowPlace& place) {
    const auto runs = prefix_.view(place.layer, place.plane, {0, tokens_});
    if (!runs) return tl::unexpected(runs.error());
    std::uint64_t offset = place.offset;
    for (const Run& run : *runs) {
      if (auto done = write_at(offset, run.bytes); !done) return done;
      offset += run.bytes.size();
    }
    return {};
  }

  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n =
          ::pwrite(file_.fd(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        const int error = errno;
        return tl::unexpected(
            Error{Errc::io, error,
                  fmt::format("{}: cannot write: {}", file_.name(), std::strerror(error))});
      }
      offset += static_cast<std::uint64_t>(n);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }

  void note(Error error) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::move(error);
    failed_ = true;
  }

  const Prefix& prefix_;
  std::uint32_t tokens_;
  std::span<const RowPlace> places_;
  const OutputFile& file_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex error_mutex_;
  std::optional<Error> error_;
};

}  // namespace

Result<void> place_rows(const Prefix& prefix, std::uint32_t tokens,
                        std::span<const RowPlace> places, const OutputFile& file,
                        const Progress& progress) {
  RowPlacer placer(prefix, tokens, places, file);
  const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1U, max_threads);
  {
    std::vector<std::jthread> others;
    try {
      for (unsigned i = 1; i < cores && i < places.size(); ++i) {
        others.emplace_back([&placer] { placer.work({}); });
      }
    } catch (const std::system_error&) {
      // No more threads to be had: those that there are do all of it.
    }
    placer.work(progress);
  }
  return placer.result();
}

}  // namespace esker::cli::llama
