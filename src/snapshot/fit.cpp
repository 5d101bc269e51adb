// Invariants
// 1. Rows that are not exact never go where the model id does not say so.
#include "snapshot/fit.hpp"

#include <algorithm>

#include "archive/namespaces.hpp"
#include "base/error.hpp"

namespace esker::detail {

namespace {

constexpr std::string_view lossy_key = "lossy";

/// The model id without some of its keys.
Result<ModelId> without(const ModelId& model, const std::vector<std::string>& keys) {
  ModelId rest;
  for (const auto& [key, value] : model.entries()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    if (auto ok = rest.set(key, value); !ok) return failure_of(ok);
  }
  return rest;
}

Result<void> check_geometry(const SnapshotHead& head, const std::string& label,
                            const Geometry& geometry) {
  const std::string difference = geometry.row_difference(head.geometry);
  if (!difference.empty()) {
    return fail(Errc::incompatible,
                label + ": its rows are not those of the store: " + difference +
                    "; import it into a store of its own with `esker import --create`");
  }
  // Then every path of the file forks where one of the store's blocks ends.
  if (head.geometry.block_tokens % geometry.block_tokens == 0) return {};
  return fail(Errc::incompatible, label + ": block_tokens is " +
                                      std::to_string(head.geometry.block_tokens) +
                                      ", and the store's " + std::to_string(geometry.block_tokens) +
                                      " do not divide it; import it into a store of its own with "
                                      "`esker import --create`");
}

}  // namespace

Result<void> check_fits(const SnapshotHead& head, const std::string& label,
                        const Geometry& geometry, const ModelId& model,
                        const std::vector<std::string>& assume_same) {
  if (std::find(assume_same.begin(), assume_same.end(), lossy_key) != assume_same.end()) {
    return fail(Errc::invalid,
                "assume_same: \"lossy\" cannot be assumed: quantised rows would look exact; import "
                "them into a store of their own with `esker import --create`");
  }
  if (head.use != SnapshotUse::portable) {
    return fail(Errc::invalid, label +
                                   ": this is a cold file of a store, not a snapshot; `esker "
                                   "export` writes one");
  }
  if (auto ok = check_geometry(head, label, geometry); !ok) return ok;
  auto ours = without(model, assume_same);
  if (!ours) return failure_of(ours);
  auto theirs = without(head.model, assume_same);
  if (!theirs) return failure_of(theirs);
  const std::string difference = ours->difference(*theirs);
  if (difference.empty()) return {};
  return fail(Errc::incompatible,
              label + ": its model id is not the store's: " + difference +
                  "; if you know that these keys change no rows, import it with --assume-same KEY");
}

Result<std::vector<std::optional<std::string>>> name_namespaces(
    const SnapshotHead& head, const std::vector<ArchiveNamespace>& archived,
    const std::vector<std::string>& names) {
  std::vector<std::optional<std::string>> found(archived.size());
  bool digests = false;
  for (std::size_t i = 0; i < archived.size(); ++i) {
    if (archived[i].named) found[i] = archived[i].bytes;
    digests = digests || !archived[i].named;
  }
  for (const std::string& name : names) {
    if (!digests || is_public_namespace(name)) continue;
    auto digest = namespace_digest(name, head.salt);
    if (!digest) return failure_of(digest);
    const std::string_view bytes(reinterpret_cast<const char*>(digest->data()), digest->size());
    for (std::size_t i = 0; i < archived.size(); ++i) {
      if (!archived[i].named && archived[i].bytes == bytes) found[i] = name;
    }
  }
  return found;
}

}  // namespace esker::detail
