#pragma once

#include <sys/stat.h>
#include <cstddef>
#include <cstdint>
#include <esker/result.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catalog/area.hpp"

namespace esker::detail {

/// A random number for the name of a file; never 0.
[[nodiscard]] std::uint64_t fresh_suffix() noexcept;

struct Naming {
  bool replace = true;
  std::optional<timespec> modified;  ///< keeps the moment of the last use
};

/// Writes a file under a temporary name, waits for the disk, and gives it its name. The directory
/// is not synced. False when `replace` is not wanted and the name is taken. Leaves no temporary.
[[nodiscard]] Result<bool> write_new_file(const SessionArea& area, const std::string& name,
                                          std::span<const std::byte> head,
                                          std::span<const std::byte> body, const Naming& naming);

/// Gives a file a second name: a link, or a copy where links are not possible. Skips what is no
/// regular file.
[[nodiscard]] Result<void> link_part(const SessionArea& area, const std::string& from,
                                     const std::string& to);
[[nodiscard]] Result<void> copy_part(const SessionArea& area, const std::string& from,
                                     const std::string& to);

/// Removes a file if it is there; a directory in the place of one as well, when it is empty.
[[nodiscard]] Result<void> remove_anything(const SessionArea& area, const std::string& file);

/// Names that were given for a session which does not name them yet: removed again unless `keep`
/// is called.
class NewParts {
 public:
  explicit NewParts(const SessionArea& area) noexcept : area_(area) {}
  NewParts(const NewParts&) = delete;
  NewParts& operator=(const NewParts&) = delete;
  ~NewParts();

  void add(std::string name) { names_.push_back(std::move(name)); }
  void keep() noexcept { names_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return names_.empty(); }

 private:
  SessionArea area_;
  std::vector<std::string> names_;
};

}  // namespace esker::detail
