#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <span>
#include <string>

#include "llama/unique_fd.hpp"

namespace esker::cli::llama {

/// A file of known size to read from anywhere. Pipes and standard input are first read to their end
/// into memory that has no name on any disk.
/// Threads:  `read` from any thread.
/// Lifetime: owns its descriptor.
/// Errors:   `Errc::io` when the system refuses or the file became shorter, `Errc::invalid` for
///           directories, terminals and pipes that hold more than half of the machine's memory.
/// Cost:     `read` is one pread, as a rule.
class InputFile {
 public:
  /// "-" is standard input.
  [[nodiscard]] static Result<InputFile> open(const std::string& path);
  /// Takes over an open descriptor; `name` is for messages.
  [[nodiscard]] static Result<InputFile> adopt(UniqueFd fd, std::string name);

  /// What to call it in messages.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Fills all of `out`, or fails.
  [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> out) const;
  /// Fails when someone wrote to the file since it was opened: what was read may be of two files.
  [[nodiscard]] Result<void> check_unchanged() const;

 private:
  InputFile(UniqueFd fd, std::string name, const struct stat& status) noexcept;

  UniqueFd fd_;
  std::string name_;
  std::uint64_t bytes_ = 0;
  std::int64_t modified_ns_ = 0;
};

}  // namespace esker::cli::llama
