#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <span>
#include <string>
#include <vector>

namespace esker::cli::llama {

/// Collects bytes and writes them to a descriptor in large pieces. Seeks only to leave a gap: pipes
/// are fine without.
/// Threads:  one.
/// Lifetime: borrows the descriptor. What was not flushed is lost.
/// Errors:   `Errc::io` as soon as a write fails.
/// Cost:     a buffer of 1 MiB; larger pieces go straight through.
class ByteSink {
 public:
  ByteSink(int fd, std::string name);

  [[nodiscard]] Result<void> put(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> put_u32(std::uint32_t value);
  [[nodiscard]] Result<void> put_u64(std::uint64_t value);
  [[nodiscard]] Result<void> flush();
  /// Leaves a gap, which only a file can have.
  [[nodiscard]] Result<void> skip(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  [[nodiscard]] Result<void> write_all(std::span<const std::byte> bytes);

  int fd_;
  std::string name_;
  std::vector<std::byte> buffer_;
  std::uint64_t bytes_ = 0;
};

}  // namespace esker::cli::llama
