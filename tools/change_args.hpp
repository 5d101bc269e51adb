#pragma once

namespace esker::cli {

/// Shared by the commands that take something away.
struct ChangeArgs {
  bool dry_run = false;
  bool assume_yes = false;
};

}  // namespace esker::cli
