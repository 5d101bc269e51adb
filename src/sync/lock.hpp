#pragma once

#include <cstdint>
#include <esker/result.hpp>

#include "region/directory.hpp"

namespace esker::detail {

/// Bytes of the `lock` file. Open-file-description locks: freed by the kernel when the holder dies,
/// never stolen, never stored.
namespace lock_bytes {
inline constexpr std::uint64_t init = 0;
inline constexpr std::uint64_t grow = 1;
inline constexpr std::uint64_t evict = 2;
inline constexpr std::uint64_t sessions = 3;
inline constexpr std::uint64_t cold = 4;
inline constexpr std::uint64_t seat = 4096;  ///< + seat index
inline constexpr std::uint64_t file_bytes = 4096;
}  // namespace lock_bytes

/// True when someone else holds a byte in [first, first + count); also on an error, since the
/// caller then leaves things alone.
[[nodiscard]] bool bytes_held_by_others(int fd, std::uint64_t first, std::uint64_t count) noexcept;

/// A descriptor of `lock` of its own: its locks exclude those of every other LockFile, also in this
/// process. Unlocks explicitly before it closes, since a forked child may hold a copy.
class LockFile {
 public:
  LockFile() noexcept = default;
  LockFile(LockFile&&) noexcept = default;
  LockFile& operator=(LockFile&&) = delete;
  ~LockFile();

  [[nodiscard]] static Result<LockFile> open(const Directory& store, Sharing sharing,
                                             bool create = false);
  /// Takes over a descriptor that stands in the lock registry.
  [[nodiscard]] static LockFile over(File registered) noexcept {
    return LockFile(std::move(registered));
  }

  [[nodiscard]] bool try_lock(std::uint64_t byte) const noexcept;
  /// Polls until `deadline_ms` from now; false when somebody else still holds the byte.
  [[nodiscard]] bool lock(std::uint64_t byte, std::uint32_t deadline_ms) const noexcept;
  void unlock(std::uint64_t byte) const noexcept;
  /// True when someone else holds a byte in [first, first + count).
  [[nodiscard]] bool held_by_others(std::uint64_t first, std::uint64_t count) const noexcept;

  [[nodiscard]] File& file() noexcept { return file_; }
  [[nodiscard]] bool valid() const noexcept { return file_.valid(); }

 private:
  explicit LockFile(File file) noexcept : file_(std::move(file)) {}
  File file_;
};

}  // namespace esker::detail
