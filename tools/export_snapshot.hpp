#pragma once

#include "args.hpp"

namespace esker::cli {

/// `esker export --format esnap`: paths, sessions, prompts, or all of a store.
int export_as_snapshot(const ExportArgs& args, Output& out);

}  // namespace esker::cli
