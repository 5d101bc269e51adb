#pragma once

#include <esker/options.hpp>
#include <esker/result.hpp>
#include <esker/store.hpp>
#include <optional>
#include <string>

namespace esker::cli {

/// A store that lives as long as this object, for what only a store can do.
/// Threads:  one; one object at a time.
/// Lifetime: gone with the object, and with the process when that is ended by SIGINT, SIGTERM or
///           SIGHUP while a `guarded` progress is called or the object dies. What SIGKILL leaves is
///           removed by the next one in the same directory.
/// Errors:   those of Store::create.
/// Cost:     those of a store.
class TemporaryStore {
 public:
  /// Makes the store in `directory`, which should be where the result will be: there is room.
  [[nodiscard]] static Result<TemporaryStore> create(const std::string& directory,
                                                     const Geometry& geometry, const ModelId& model,
                                                     std::uint64_t rows_bytes);

  TemporaryStore(TemporaryStore&& other) noexcept;
  TemporaryStore& operator=(TemporaryStore&&) = delete;
  ~TemporaryStore();

  [[nodiscard]] Store& store() noexcept { return *store_; }
  /// `progress`, and the end of the process when a signal asked for it.
  [[nodiscard]] Progress guarded(Progress progress) const;

 private:
  TemporaryStore(std::string path, Store store);

  std::string path_;
  std::optional<Store> store_;
};

}  // namespace esker::cli
