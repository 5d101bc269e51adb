#pragma once

#include <esker/result.hpp>

namespace esker::detail {

class Core;

/// Fills an empty control file from the block headers of the mapped segments: the trie, its hints
/// and how long ago each block was published. Nobody else uses the control file yet.
[[nodiscard]] Result<void> rebuild(Core& core);

}  // namespace esker::detail
