#pragma once

#include "args.hpp"
#include "output.hpp"

namespace esker::cli {

/// `export --format llama-session` and `--format safetensors`. Returns the exit code, and has said
/// all.
[[nodiscard]] int export_converted(const ExportArgs& args, Output& out);

}  // namespace esker::cli
