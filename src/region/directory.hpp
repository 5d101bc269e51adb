#pragma once

#include <esker/options.hpp>
#include <esker/result.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "region/file.hpp"

namespace esker::detail {

namespace file_names {
inline constexpr const char* superblock = "esker";
inline constexpr const char* lock = "lock";
inline constexpr const char* control = "control";
inline constexpr const char* segments = "segments";
inline constexpr const char* sessions = "sessions";
inline constexpr const char* cold = "cold";
inline constexpr const char* cache_tag = "CACHEDIR.TAG";
inline constexpr const char* model_file = "model_file";  ///< a note that `esker create` makes
inline constexpr std::string_view temporary_prefix = ".tmp-";
}  // namespace file_names

[[nodiscard]] std::string segment_name(std::uint32_t index);

/// An opened directory of a store. Everything below it is reached through its descriptor, so that a
/// store that is renamed or mounted over keeps working.
class Directory {
 public:
  Directory() noexcept = default;

  /// `Errc::missing` when there is none.
  [[nodiscard]] static Result<Directory> open(const std::string& path);
  [[nodiscard]] static Result<Directory> open_below(const Directory& parent,
                                                    const std::string& name);
  /// Makes the directory and its missing parents; an existing one is opened.
  [[nodiscard]] static Result<Directory> create(const std::string& path, Sharing sharing);
  [[nodiscard]] static Result<Directory> create_below(const Directory& parent,
                                                      const std::string& name, Sharing sharing);

  [[nodiscard]] const std::string& path() const noexcept { return handle_.path(); }
  [[nodiscard]] int fd() const noexcept { return handle_.fd(); }

  /// Refuses a directory that strangers could write to, or that belongs to someone else.
  [[nodiscard]] Result<void> check_permissions(Sharing sharing) const;

  /// Opens a file and refuses one that is owned by a stranger or open to the world.
  [[nodiscard]] Result<File> open_file(const std::string& name, int flags, Sharing sharing) const;
  /// Creates a file (O_EXCL) with the owner, group and mode that the store's files have.
  [[nodiscard]] Result<File> create_file(const std::string& name, Sharing sharing) const;
  /// Creates a file under a random temporary name.
  [[nodiscard]] Result<File> create_temporary(Sharing sharing) const;

  /// Moves a temporary to its final name. With `replace` false an existing file stays, and the call
  /// returns false.
  [[nodiscard]] Result<bool> publish(const File& temporary, const std::string& name,
                                     bool replace) const;
  [[nodiscard]] Result<void> remove_file(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const noexcept;
  /// What lies in it, if its name begins with `prefix`.
  [[nodiscard]] Result<std::vector<std::string>> names(std::string_view prefix = {}) const;
  [[nodiscard]] Result<void> sync() const;
  /// Removes what killed builders left behind. Only for the holder of the INIT lock.
  void sweep_temporaries() const noexcept;

 private:
  explicit Directory(File handle) noexcept : handle_(std::move(handle)) {}
  [[nodiscard]] static Result<Directory> make(int parent_fd, const std::string& parent_path,
                                              const std::string& name, Sharing sharing);
  [[nodiscard]] Result<void> adopt(const File& file, Sharing sharing) const;

  File handle_;
};

}  // namespace esker::detail
