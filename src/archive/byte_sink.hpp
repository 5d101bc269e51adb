#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <memory>
#include <span>
#include <string>

#include "region/directory.hpp"

namespace esker::detail {

/// Where a snapshot goes: bytes in order.
class ByteSink {
 public:
  ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;
  virtual ~ByteSink() = default;
  [[nodiscard]] virtual Result<void> write(std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual const std::string& label() const noexcept = 0;
};

/// A pipe, a socket or an open file that belongs to the caller.
[[nodiscard]] std::unique_ptr<ByteSink> sink_to(int fd, std::string label);

/// A file that gets its name when it is whole: temporary beside it, synced, renamed. Dropped
/// before `commit`, it leaves nothing; killed before, only a temporary.
class FileSink : public ByteSink {
 public:
  /// `Errc::invalid` when the file exists and is not to be replaced.
  [[nodiscard]] static Result<std::unique_ptr<FileSink>> create(const std::string& path,
                                                                bool replace);
  /// The same within a store's directory, with the mode of its files.
  [[nodiscard]] static Result<std::unique_ptr<FileSink>> create_in(const Directory& directory,
                                                                   const std::string& name,
                                                                   Sharing sharing);
  [[nodiscard]] virtual Result<void> commit() = 0;
};

}  // namespace esker::detail
