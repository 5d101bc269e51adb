#pragma once

#include <esker/snapshot_info.hpp>
#include <string>

#include "archive/reader.hpp"
#include "store/core.hpp"

namespace esker::detail {

/// Writes sessions of a file into a store, each under the SESSIONS lock.
class SessionStorer {
 public:
  SessionStorer(Core& core, const ImportOptions& options, ImportReport& report)
      : core_(core), options_(options), report_(report) {}

  /// The session with its states, under a namespace by its real name.
  [[nodiscard]] Result<void> store(const SessionWithStates& found, const std::string& name_space);
  /// Marks what kept sessions hold, once all are written.
  [[nodiscard]] Result<void> finish();

 private:
  Core& core_;
  const ImportOptions& options_;
  ImportReport& report_;
  bool any_kept_ = false;
};

}  // namespace esker::detail
