#pragma once

#include <string>

#include "store_operand.hpp"

namespace esker::cli {

// A store knows its model by what it is, not by where it lies. `create --model-file` notes the
// place beside, in the store's file `model_file`, so that `maintain` can name stores whose model is
// gone. It is a note to people: nothing else depends on it.

/// Notes where the model's file lies. What fails is not worth an error.
void note_model_file(const StorePlace& place, const std::string& model_file, bool group);

/// The path that was noted, or "".
[[nodiscard]] std::string noted_model_file(const StorePlace& place);

}  // namespace esker::cli
