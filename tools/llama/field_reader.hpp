#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "llama/input_file.hpp"

namespace esker::cli::llama {

/// Reads little-endian fields one after the other, each checked against the end of the file.
/// Threads:  one.
/// Lifetime: borrows the InputFile.
/// Errors:   the first one stays: later fields read as 0, and `error` tells what happened. Check
///           `ok` before a value sizes or steers anything.
/// Cost:     a buffer of 64 KiB; `skip` and `seek` read nothing.
class FieldReader {
 public:
  explicit FieldReader(const InputFile& file) : file_(&file) {}

  [[nodiscard]] std::uint32_t u32(std::string_view field);
  [[nodiscard]] std::int32_t i32(std::string_view field);
  [[nodiscard]] std::uint64_t u64(std::string_view field);
  /// Reads `bytes` bytes of text, whatever they are. The caller has checked how many it takes.
  [[nodiscard]] std::string text(std::uint32_t bytes, std::string_view field);
  /// Steps over `count` items of `item_bytes` each.
  void skip(std::uint64_t count, std::uint64_t item_bytes, std::string_view field);
  void seek(std::uint64_t offset) noexcept { offset_ = offset; }

  /// Records that the field that was just read is wrong. Says what was found and expected.
  void reject(std::string_view field, std::string_view found, std::string_view expected);
  void reject(std::string_view field, std::uint64_t found, std::string_view expected);
  /// Records a refusal in free words.
  void refuse(Errc code, std::string_view why);

  [[nodiscard]] bool ok() const noexcept { return !error_.has_value(); }
  [[nodiscard]] const Error& error() const { return *error_; }
  void forget_error() noexcept { error_.reset(); }

  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  [[nodiscard]] std::uint64_t remaining() const noexcept { return file_->bytes() - offset_; }
  [[nodiscard]] const InputFile& file() const noexcept { return *file_; }

 private:
  template <class T>
  T number(std::string_view field);
  [[nodiscard]] bool fill(std::size_t bytes);

  const InputFile* file_;
  std::uint64_t offset_ = 0;
  std::uint64_t field_offset_ = 0;
  std::uint64_t buffer_offset_ = 0;
  std::vector<std::byte> buffer_;
  std::optional<Error> error_;
};

}  // namespace esker::cli::llama
