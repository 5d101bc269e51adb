#pragma once

#include <esker/snapshot.hpp>
#include <esker/store.hpp>
#include <memory>

#include "base/error.hpp"
#include "store/core.hpp"

namespace esker {

/// What this module may see of a Store and of a Snapshot.
class SnapshotAccess {
 public:
  /// The handle of a store that can be used, for writing where asked.
  [[nodiscard]] static Result<std::shared_ptr<detail::Core>> core(const Store& store,
                                                                  bool for_writing) {
    if (store.core_ == nullptr) return detail::fail(Errc::invalid, "this Store was moved from");
    if (auto ok = store.core_->usable(for_writing); !ok) return detail::failure_of(ok);
    return store.core_;
  }
  [[nodiscard]] static Result<std::shared_ptr<detail::SnapshotSource>> source(
      const Snapshot& snapshot) {
    if (snapshot.source_ != nullptr) return snapshot.source_;
    return detail::fail(Errc::invalid, "this Snapshot was moved from");
  }
};

}  // namespace esker
