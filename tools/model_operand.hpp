#pragma once

#include <esker/geometry.hpp>
#include <esker/options.hpp>

#include "args.hpp"

namespace esker::cli {

/// The model id that `--model KEY=VALUE` and `--model-file GGUF` spell. The file gives `weights`
/// and `weights_bytes`: digest and length of its content. Empty arguments give an unnamed id.
[[nodiscard]] Result<ModelId> model_id(const ModelArgs& args, const Progress& progress);

}  // namespace esker::cli
