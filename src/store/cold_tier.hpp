#pragma once

#include "store/cold_index.hpp"
#include "store/prefetch.hpp"

namespace esker::detail {

/// What a handle knows of cold blocks, and the thread that brings them back.
struct ColdTier {
  explicit ColdTier(Core& core) : prefetcher(core) {}
  ColdIndex index;
  Prefetcher prefetcher;
};

}  // namespace esker::detail
