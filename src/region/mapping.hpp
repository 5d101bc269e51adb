#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <memory>
#include <span>

namespace boost::interprocess {
class mapped_region;
}

namespace esker::detail {

class File;

/// A shared mapping of a file. Not inherited by fork: a child that touches it faults instead of
/// reading bytes that the parent no longer protects.
class Mapping {
 public:
  enum class Mode : std::uint8_t { read, read_write };

  Mapping() noexcept;
  Mapping(Mapping&&) noexcept;
  Mapping& operator=(Mapping&&) noexcept;
  ~Mapping();

  [[nodiscard]] static Result<Mapping> map(const File& file, std::uint64_t bytes, Mode mode);

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// In a forked child the addresses may belong to something else by now: forget, do not unmap.
  void abandon() noexcept;

 private:
  std::unique_ptr<boost::interprocess::mapped_region> region_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Private zeroed memory that costs nothing until it is touched.
class ZeroMemory {
 public:
  ZeroMemory() noexcept = default;
  ZeroMemory(ZeroMemory&&) noexcept;
  ZeroMemory& operator=(ZeroMemory&&) noexcept;
  ~ZeroMemory();

  [[nodiscard]] static Result<ZeroMemory> allocate(std::size_t bytes);
  /// One page whose first byte is 1, and 0 in a child after fork.
  [[nodiscard]] static Result<ZeroMemory> allocate_wiped_on_fork();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace esker::detail
