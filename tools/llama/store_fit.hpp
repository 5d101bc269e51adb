#pragma once

#include <esker/geometry.hpp>
#include <esker/result.hpp>

#include "llama/seq_reader.hpp"

namespace esker::cli::llama {

/// Proves that rows of this file and of a store with this geometry and model id are of one kind, as
/// far as the file tells. `Errc::incompatible` names what differs.
[[nodiscard]] Result<void> check_fit(const SeqFile& file, const Geometry& geometry,
                                     const ModelId& stored);

/// Proves that `given` is the model of the store, or that neither has a name. The rotation keys are
/// left out: a file tells them by itself.
[[nodiscard]] Result<void> check_model(const SeqFile& file, const ModelId& given,
                                       const ModelId& stored);

}  // namespace esker::cli::llama
