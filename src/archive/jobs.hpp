#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <functional>

namespace esker::detail {

/// Runs `work(worker)` once on each of `threads` threads, the calling one among them, and returns
/// when all have ended. With one thread none is started; fewer run when the system has no more.
/// `work` should end soon after another worker has failed. Returns the first failure.
[[nodiscard]] Result<void> run_workers(std::uint32_t threads,
                                       const std::function<Result<void>(std::size_t)>& work);

/// Does jobs 0…count, each once, on so many threads. After a failure no more are begun.
[[nodiscard]] Result<void> run_jobs(
    std::size_t count, std::uint32_t threads,
    const std::function<Result<void>(std::size_t job, std::size_t worker)>& job);

}  // namespace esker::detail
