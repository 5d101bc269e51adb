#pragma once

#include "args.hpp"
#include "llama/unique_fd.hpp"

namespace esker::cli {

/// `esker import` of a snapshot, and `esker restore`. `input` is the file, from its beginning.
int import_from_snapshot(const ImportArgs& args, llama::UniqueFd input, Output& out);

}  // namespace esker::cli
