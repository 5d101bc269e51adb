#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <span>
#include <string>
#include <vector>

#include "region/file.hpp"

namespace esker::detail {

/// Where a snapshot comes from: bytes in order, from a file or from a descriptor that is read once.
class ByteSource {
 public:
  /// Takes the file over; regular files only.
  [[nodiscard]] static Result<ByteSource> of_file(File file);
  /// `fd` stays the caller's and is read from where it stands.
  [[nodiscard]] static ByteSource of_stream(int fd, std::string label);

  /// Exactly so many bytes; `what` says of what, for the message when there are fewer.
  [[nodiscard]] Result<void> read(std::span<std::byte> bytes, std::string_view what);
  /// The same into a list, which grows no faster than bytes arrive.
  [[nodiscard]] Result<void> read(std::vector<std::byte>& bytes, std::uint64_t count,
                                  std::string_view what);
  [[nodiscard]] Result<void> skip(std::uint64_t bytes, std::string_view what);
  /// Fails when anything follows.
  [[nodiscard]] Result<void> expect_end();
  /// Of a file: reads go on here.
  void seek(std::uint64_t position) noexcept { position_ = position; }

  [[nodiscard]] bool seekable() const noexcept { return file_.valid(); }
  [[nodiscard]] const File& file() const noexcept { return file_; }
  [[nodiscard]] const std::string& label() const noexcept { return label_; }
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return file_bytes_; }

 private:
  ByteSource() = default;
  [[nodiscard]] Result<std::size_t> some(std::span<std::byte> bytes);
  [[nodiscard]] Result<void> within(std::uint64_t count, std::string_view what) const;

  File file_;
  int fd_ = -1;
  std::string label_;
  std::uint64_t position_ = 0;
  std::uint64_t file_bytes_ = 0;  ///< 0: a stream
};

}  // namespace esker::detail
