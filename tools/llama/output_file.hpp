#pragma once

#include <cstdint>
#include <esker/result.hpp>
#include <string>

#include "llama/unique_fd.hpp"

namespace esker::cli::llama {

/// A new file that appears at its place whole or not at all, or standard output.
/// Threads:  one.
/// Lifetime: dropped before `commit`, it leaves nothing behind; killed, neither, unless the file
///           system cannot keep files without a name.
/// Errors:   `Errc::invalid` when something is in the way, or a terminal would get binary data.
/// Cost:     `commit` waits for the disk.
class OutputFile {
 public:
  /// "-" is standard output. Replaces an existing file only with `force`. Readable by its owner
  /// only, since a cache is as private as its text; a replaced file keeps its mode.
  [[nodiscard]] static Result<OutputFile> create(const std::string& path, bool force);

  OutputFile(OutputFile&& other) noexcept { swap(other); }
  OutputFile& operator=(OutputFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~OutputFile();

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Takes the disk space now, so that a full disk is known before anything is written.
  [[nodiscard]] Result<void> reserve(std::uint64_t bytes);
  /// True for a file, which can be written at any place; false for a pipe or a device.
  [[nodiscard]] bool seekable() const noexcept { return !directory_.empty(); }
  /// Throws away what was written to a file so far.
  [[nodiscard]] Result<void> restart();
  /// Makes the file durable and gives it its name.
  [[nodiscard]] Result<void> commit();

 private:
  OutputFile() = default;
  void swap(OutputFile& other) noexcept;
  [[nodiscard]] Result<void> open_temporary(unsigned mode);
  [[nodiscard]] Result<void> name_temporary();
  [[nodiscard]] Result<void> publish();

  UniqueFd fd_;
  std::string name_;       ///< for messages
  std::string directory_;  ///< of the file; empty for standard output and devices
  std::string path_;
  std::string temporary_;  ///< its name while it has one
  bool force_ = false;
};

}  // namespace esker::cli::llama
